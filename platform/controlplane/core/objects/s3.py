"""The object store in an S3 bucket. Knows boto3's calls; credentials come from its own chain of variables and roles.

Signature version 4 and path addressing are set: the default presigned PUT is refused by most servers but Amazon's. S3 cannot
limit the size of a presigned PUT; whoever takes the upload in checks `stat` against its limit.
"""

import hashlib
import tempfile
from typing import Any, BinaryIO, cast

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from controlplane.core.objects.keys import CHUNK_BYTES, MissingObject, StoredObject, check_key, chunks, describe

_ABSENT = frozenset({"404", "NoSuchKey", "NotFound"})
TIMEOUT_S = 30


class S3Store:
    """`endpoint_url` None is Amazon's; else any server that speaks S3. Signed URLs name `public_url`, where it is given."""

    def __init__(self, bucket: str, prefix: str = "", endpoint_url: str | None = None, *, public_url: str | None = None) -> None:
        self.bucket = bucket
        self.prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        config = Config(
            signature_version="s3v4",
            s3={"addressing_style": "path"},
            connect_timeout=TIMEOUT_S,
            read_timeout=TIMEOUT_S,
            retries={"max_attempts": 3},
        )
        self.client: Any = boto3.client("s3", endpoint_url=endpoint_url, config=config)
        self._signer: Any = boto3.client("s3", endpoint_url=public_url, config=config) if public_url else self.client

    def ensure_bucket(self) -> None:
        """Make the bucket where it is absent. Needs rights that serving processes do not."""
        if self.bucket not in {bucket["Name"] for bucket in self.client.list_buckets()["Buckets"]}:
            self.client.create_bucket(Bucket=self.bucket)

    def put(self, key: str, data: bytes | BinaryIO) -> StoredObject:
        # Spooled first: the digest and the length are known before the object becomes visible.
        digest, size_bytes = hashlib.sha256(), 0
        with tempfile.SpooledTemporaryFile(max_size=8 * CHUNK_BYTES) as spool:
            for chunk in chunks(data):
                spool.write(chunk)
                digest.update(chunk)
                size_bytes += len(chunk)
            spool.seek(0)
            self.client.put_object(Bucket=self.bucket, Key=self._name(key), Body=spool, ContentLength=size_bytes)
        return StoredObject(key, digest.hexdigest(), size_bytes)

    def open(self, key: str) -> BinaryIO:
        try:
            answer = self.client.get_object(Bucket=self.bucket, Key=self._name(key))
        except ClientError as error:
            if error.response["Error"]["Code"] in _ABSENT:
                raise MissingObject(key) from None
            raise
        return cast(BinaryIO, answer["Body"])

    def read(self, key: str) -> bytes:
        return self.open(key).read()

    def stat(self, key: str) -> StoredObject | None:
        try:
            return describe(key, self.open(key))
        except MissingObject:
            return None

    def delete(self, key: str) -> None:
        self.client.delete_object(Bucket=self.bucket, Key=self._name(key))

    def signed_get_url(self, key: str, expires_s: int) -> str:
        return self._presign("get_object", key, expires_s)

    def signed_put_url(self, key: str, expires_s: int, size_max: int) -> str:
        return self._presign("put_object", key, expires_s)

    def _presign(self, operation: str, key: str, expires_s: int) -> str:
        wanted = {"Bucket": self.bucket, "Key": self._name(key)}
        return str(self._signer.generate_presigned_url(operation, Params=wanted, ExpiresIn=expires_s))

    def _name(self, key: str) -> str:
        return self.prefix + check_key(key)
