"""Says of each check on stdin, a line of JSON, whether a package of PyPI takes
it: true or false a line. usage: verify_packages_judge.py SCHEME"""
import base64
import json
import sys

import standardwebhooks
import stripe


def verify(scheme, secret, headers, body):
    if scheme == "standard-webhooks":
        try:
            standardwebhooks.Webhook(secret).verify(body, headers,
                                                    json_parse=False)
        except standardwebhooks.WebhookVerificationError:
            return False
        return True
    try:
        return stripe.WebhookSignature.verify_header(
            body, headers["stripe-signature"], secret, tolerance=300)
    except stripe.SignatureVerificationError:
        return False


for line in sys.stdin:
    c = json.loads(line)
    try:
        body = base64.b64decode(c["body"]).decode()
    except UnicodeDecodeError:  # a changed byte: no text any more
        print("false")
        continue
    print(json.dumps(verify(sys.argv[1], c["secret"], c["headers"], body)))
