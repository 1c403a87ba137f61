"""Log lines as JSON, one a line, with the request's id. Knows the format; refuses to know what is logged."""

import json
import logging
from datetime import UTC, datetime

from controlplane.core.redaction import redact
from controlplane.core.requests import current_request_id


class JsonLineFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id := current_request_id():
            line["request_id"] = request_id
        if record.exc_info:
            line["traceback"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)
