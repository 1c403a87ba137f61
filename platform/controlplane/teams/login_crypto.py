"""The envelope of `prime login`: the new key is encrypted for the terminal that asked. Knows RSA-OAEP, and no database.

MGF1 and digest are SHA-256, without a label, as the public client decrypts it.
"""

import base64

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from controlplane.core.errors import Invalid

KEY_BITS_MIN = 2048
KEY_BITS_MAX = 4096


def load_public_key(pem: str) -> rsa.RSAPublicKey:
    """Raises Invalid unless `pem` is an RSA public key of 2048 to 4096 bits."""
    try:
        key = serialization.load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, rsa.RSAPublicKey) or not KEY_BITS_MIN <= key.key_size <= KEY_BITS_MAX:
        raise Invalid(("body", "encryptionPublicKey"), f"must be an RSA key of {KEY_BITS_MIN} to {KEY_BITS_MAX} bits in PEM")
    return key


def encrypt(text: str, pem: str) -> str:
    """Base64 of the text, encrypted for the holder of the private key."""
    sha256 = hashes.SHA256()
    oaep = padding.OAEP(mgf=padding.MGF1(algorithm=sha256), algorithm=sha256, label=None)
    return base64.b64encode(load_public_key(pem).encrypt(text.encode(), oaep)).decode()
