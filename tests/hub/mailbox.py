#!/usr/bin/env python3
"""A real mail server, python3-aiosmtpd, that notes what it is given.

usage: mailbox.py [--tls CERTIFICATE KEY] [--implicit] [--login USER:PASSWORD]
                  [--no-login] [--refuse ADDRESS]

Prints its port, and then a JSON line for each mail: from, to, text, and who
logged in. With --tls it offers STARTTLS, and takes no mail without; with
--implicit it speaks TLS from the first byte; with --no-login it knows no way to
log in.
"""
import argparse
import asyncio
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult


class Box:
    def __init__(self, refused, has_login):
        self.refused, self.has_login = refused, has_login

    async def handle_EHLO(self, server, session, envelope, name, lines):
        session.host_name = name
        return [line for line in lines
                if self.has_login or not line[4:].startswith("AUTH")]

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address == self.refused:
            return "550 5.1.1 no such mailbox here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        print(json.dumps({"from": envelope.mail_from, "to": envelope.rcpt_tos,
                          "text": envelope.content.decode("latin-1"),
                          "login": session.auth_data,
                          "tls": session.ssl is not None}), flush=True)
        return "250 2.0.0 taken"


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tls", nargs=2)
    parser.add_argument("--implicit", action="store_true")
    parser.add_argument("--login")
    parser.add_argument("--no-login", action="store_true")
    parser.add_argument("--refuse")
    return parser.parse_args()


async def main():
    o = options()
    tls = None
    if o.tls:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*o.tls)

    def check(server, session, envelope, mechanism, data):
        given = f"{data.login.decode()}:{data.password.decode()}"
        return AuthResult(success=given == o.login, handled=False,
                          auth_data=data.login.decode())

    def make():
        return SMTP(Box(o.refuse, not o.no_login), hostname="box.example",
                    tls_context=None if o.implicit else tls,
                    require_starttls=bool(tls) and not o.implicit,
                    authenticator=check if o.login else None,
                    auth_required=bool(o.login),
                    auth_require_tls=not o.implicit)

    server = await asyncio.get_running_loop().create_server(
        make, "127.0.0.1", 0, ssl=tls if o.implicit else None)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(0)
