/* identity.h - keys and certificates that tests make for themselves. */
#ifndef TESTS_HTTP_IDENTITY_H
#define TESTS_HTTP_IDENTITY_H

#include <openssl/x509.h>

typedef struct identity {
    EVP_PKEY *key;
    X509 *certificate;
} identity;

/* For names ("DNS:a,IP:127.0.0.1"), or an authority where it is NULL; valid
 * until so many seconds from now; by an issuer, or by itself. */
identity identity_make(const char *names, long until_s, const identity *issuer);
void identity_free(identity *i);

/* As PEM, of mode 0600. */
void identity_write(const identity *i, const char *certificate_path,
                    const char *key_path);

#endif
