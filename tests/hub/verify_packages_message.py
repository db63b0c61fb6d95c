"""Says of each request on stdin, a line of JSON, whether the package of RFC 9421
takes it: true or false a line."""
import base64
import hashlib
import json
import sys
import types

from cryptography.hazmat.primitives.serialization import load_pem_public_key
from http_message_signatures import (HTTPMessageVerifier,
                                     HTTPSignatureKeyResolver,
                                     InvalidSignature, algorithms)

ALGORITHMS = {"ed": algorithms.ED25519, "ec": algorithms.ECDSA_P256_SHA256,
              "rsa": algorithms.RSA_PSS_SHA512,
              "rsa-old": algorithms.RSA_V1_5_SHA256,
              "word": algorithms.HMAC_SHA256}


class Keys(HTTPSignatureKeyResolver):
    def __init__(self, key):
        self.key = key.encode()

    def resolve_public_key(self, key_id):
        return (self.key if key_id == "word" else
                load_pem_public_key(self.key))


for line in sys.stdin:
    r = json.loads(line)
    body = base64.b64decode(r["body"])
    message = types.SimpleNamespace(
        method=r["method"], url=r["url"], headers=r["headers"])
    try:
        HTTPMessageVerifier(signature_algorithm=ALGORITHMS[r["kind"]],
                            key_resolver=Keys(r["key"])).verify(message)
        digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
        is_right = r["headers"]["Content-Digest"] == f"sha-256=:{digest}:"
    except InvalidSignature:
        is_right = False
    print(json.dumps(is_right))
