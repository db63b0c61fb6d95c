#!/usr/bin/env python3
"""Access tokens of an authorization server that is not ours: node-oidc-provider,
from npm, which is fetched into build/tools/verify once. The target asks it whether a
token is good."""
import base64
import json
import os
import subprocess
import threading
import time
import urllib.parse
import urllib.request

import case
import oauth
import verify_packages
from oauth import SECRET

AUDITOR = ("auditor", "a secret of the target's own")
ALGORITHMS = {"RS256": ("RSA", "-pkeyopt", "rsa_keygen_bits:2048"),
              "ES256": ("EC", "-pkeyopt", "ec_paramgen_curve:P-256"),
              "EdDSA": ("ed25519",)}


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwk(public, algorithm):
    """Of the DER that `openssl pkey -pubout` makes: the key is at its end."""
    if algorithm == "EdDSA":
        key = {"kty": "OKP", "crv": "Ed25519", "x": base64url(public[-32:])}
    elif algorithm == "ES256":
        key = {"kty": "EC", "crv": "P-256", "x": base64url(public[-64:-32]),
               "y": base64url(public[-32:])}
    else:  # 2048 bits, and the exponent 65537 behind them
        assert public[-5:] == bytes([2, 3, 1, 0, 1])
        key = {"kty": "RSA", "n": base64url(public[-261:-5]), "e": "AQAB"}
    return {**key, "kid": "k1", "alg": algorithm, "use": "sig"}


def client(name, method, **more):
    return {"client_id": name, "token_endpoint_auth_method": method,
            "grant_types": ["client_credentials"], "redirect_uris": [],
            "response_types": [], **more}


class Provider:
    def __init__(self, test, life=600, jwks=(), algorithm="RS256"):
        settings = {
            "clients": [
                client("hub", "client_secret_basic", client_secret=SECRET),
                client("a:b %", "client_secret_basic", client_secret=SECRET),
                client("post", "client_secret_post", client_secret=SECRET),
                client(AUDITOR[0], "client_secret_basic",
                       client_secret=AUDITOR[1]),
                *([client("key", "private_key_jwt",
                          token_endpoint_auth_signing_alg=algorithm,
                          jwks={"keys": list(jwks)})] if jwks else [])],
            "scopes": ["orders:write", "orders:read"],
            "clientAuthMethods": ["client_secret_basic", "client_secret_post",
                                  "private_key_jwt"],
            "enabledJWA": {"clientAuthSigningAlgValues": list(ALGORITHMS)},
            "ttl": {"ClientCredentials": life},
            "features": {"clientCredentials": {"enabled": True},
                         "introspection": {"enabled": True},
                         "revocation": {"enabled": True},
                         "devInteractions": {"enabled": False}}}
        self.process = subprocess.Popen(
            ["node", oauth.HERE / "oauth_provider.mjs", verify_packages.TOOLS],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        test.addCleanup(self.close)
        self.process.stdin.write(json.dumps(settings) + "\n")
        self.process.stdin.flush()
        self.issuer = self.process.stdout.readline().strip()
        assert self.issuer, self.process.stderr.read()
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        self.url = self.issuer + "/token"
        self.seen = {}  # tokens, and what was said of them

    def close(self):
        self.process.kill()
        self.process.communicate()

    def ask(self, path, token):
        basic = ":".join(urllib.parse.quote_plus(part) for part in AUDITOR)
        question = urllib.request.Request(
            self.issuer + path, f"token={urllib.parse.quote(token)}".encode(),
            {"Authorization": "Basic " + base64.b64encode(
                basic.encode()).decode()})
        with urllib.request.urlopen(question) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def check(self, request):
        """What a target does with a token, of which it may ask each time."""
        token = request.one("authorization").removeprefix("Bearer ")
        self.seen[token] = said = self.ask("/token/introspection", token)
        return said["active"]


class Packages(oauth.Clients):
    def deliver(self, provider, count=3, **more):
        """So many messages, each with a token that the server knows."""
        refused = []
        at = self.leaf(lambda r: 200 if provider.check(r)
                       else refused.append(r) or 401)
        hub = self.start([self.target(provider, at, oauth2=more)])
        for _ in range(count):
            hub.post(b"x")
        case.wait_for(lambda: self.look(hub, "a")["delivered"] == count, "all")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual((self.rows(), refused), ([], []))
        self.assertNotIn(SECRET, json.dumps(hub.lines) + str(hub.noise))

    def test_a_secret_in_a_header(self):
        provider = Provider(self)
        self.deliver(provider, scope=["orders:write", "orders:read"])
        [said] = provider.seen.values()
        self.assertEqual((said["client_id"], set(said["scope"].split())),
                         ("hub", {"orders:write", "orders:read"}))

    def test_an_id_that_is_encoded(self):
        self.deliver(Provider(self), **{"client-id": "a:b %"})

    def test_a_secret_in_the_body(self):
        self.deliver(Provider(self), **{"client-id": "post", "auth": "body"})

    def by_key(self, algorithm):
        key = os.path.join(self.folder, "k")
        subprocess.run(["openssl", "genpkey", "-algorithm",
                        *ALGORITHMS[algorithm], "-out", key], check=True,
                       capture_output=True)
        os.chmod(key, 0o600)
        public = subprocess.run(["openssl", "pkey", "-in", key, "-pubout",
                                 "-outform", "DER"], check=True,
                                capture_output=True).stdout
        provider = Provider(self, jwks=[jwk(public, algorithm)],
                            algorithm=algorithm)
        self.deliver(provider, **{
            "client-id": "key", "client-secret": None, "key-id": "k1",
            "private-key": {"file": "k"},
            "assertion-audience": provider.issuer})

    def test_a_jwt_of_an_rsa_key(self):
        self.by_key("RS256")

    def test_a_jwt_of_a_key_of_p256(self):
        self.by_key("ES256")

    def test_a_jwt_of_a_key_of_ed25519(self):
        self.by_key("EdDSA")

    def test_tokens_are_replaced_ahead_of_their_end(self):
        provider = Provider(self, life=4)
        refused = []
        at = self.leaf(lambda r: 200 if provider.check(r)
                       else refused.append(r) or 401)
        hub = self.start([self.target(provider, at)])
        until, count = time.monotonic() + 7, 0
        while time.monotonic() < until:
            hub.post(b"x")
            count += 1
        case.wait_for(lambda: self.look(hub, "a")["delivered"] == count, "all")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual((self.rows(), refused), ([], []))
        self.assertGreaterEqual(len(provider.seen), 4)

    def test_what_the_server_says_to_another_secret(self):
        provider = Provider(self)
        hub = self.start([self.target(provider, self.leaf(), oauth2={
            "client-secret": "another"})])
        self.assertRegex(hub.event("token-failed")["detail"],
                         "answered 401 invalid_client")
        self.assertEqual(hub.stop(), 0)


if __name__ == "__main__":
    verify_packages.fetched()
    case.main()
