"""Every code that an answer of the API can carry: statuses, meaning, way out. `docs/errors.md` is written from here.

A guard test holds the table equal to the codes in the code, both ways. Refuses to know who raises what.
"""

from typing import Final, NamedTuple


class Code(NamedTuple):
    statuses: tuple[int, ...]
    meaning: str
    way_out: str


CODES: Final[dict[str, Code]] = {
    "bad_request": Code((400,), "The address or the body is malformed.", "Correct the request; `detail` says where."),
    "invalid_json": Code((400,), "The body is no JSON object.", "Send a JSON object."),
    "invalid_request": Code((400,), "The model's engine refuses the request; `message` says why.", "Correct the request."),
    "context_length_exceeded": Code((400,), "Prompt and answer exceed the model's context.", "Send less, or ask for less."),
    "unauthorized": Code((401,), "No credential was sent.", "Send `Authorization: Bearer rsk_…`, or sign in."),
    "malformed_key": Code((401,), "The text is no API key: its checksum does not match.", "Copy the key again, whole."),
    "invalid_key": Code((401,), "There is no such key.", "Make a key on the keys page or with `prime login`."),
    "revoked_key": Code((401,), "The key was revoked.", "Make a new key."),
    "expired_key": Code((401,), "The key's time is over.", "Make a new key."),
    "wrong_credentials": Code((401,), "E-mail address or password is wrong.", "Try again; ten tries in ten minutes."),
    "wrong_token": Code((401,), "Another terminal asks for the result of a login.", "Run `prime login` again."),
    "insufficient_funds": Code((402,), "The wallet does not cover it.", "`prime wallet top-up AMOUNT`."),
    "forbidden": Code((403,), "The actor may not do this.", "Ask an admin of the team."),
    "scope_missing": Code((403,), "The key lacks the scope that `detail` names.", "Use a key with that scope."),
    "admin_required": Code((403,), "Only an admin of the team may do this.", "Ask an admin of the team."),
    "key_outlives_maker": Code((403,), "A key that expires makes none that lives longer.", "Give it an earlier `expires_at`."),
    "csrf_failed": Code(
        (403,), "A session's request lacks its CSRF token.", "Send the cookie `rootstock_csrf` as `X-CSRFToken`."
    ),
    "bad_signature": Code((403,), "The signed address was changed.", "Ask for a new address."),
    "expired": Code((403,), "The signed address has run out.", "Ask for a new address."),
    "not_found": Code(
        (404,), "There is no such object, or it is another team's: the two are one.", "Look at the list; name the team."
    ),
    "model_not_found": Code((404,), "The model does not exist or is not yours.", "`GET /api/inference/v1/models` lists yours."),
    "model_not_deployed": Code((404,), "The adapter is yours and not deployed.", "`prime deployments create ADAPTER_ID`."),
    "log_not_started": Code((404,), "The run has written no log yet.", "Ask again in some seconds."),
    "method_not_allowed": Code((405,), "The address does not know the method.", "See the API reference."),
    "conflict": Code((409,), "The object's state does not allow it; `detail` names the state.", "See `hint`."),
    "already_approved": Code((409,), "The login request was approved before.", "Run `prime login` again."),
    "already_exists": Code(
        (409,), "A release with this version or content is published.", "Raise the version: `prime push --auto-bump`."
    ),
    "checkpoint_retired": Code((409,), "The plan of its run has removed the checkpoint.", "Begin from a later one."),
    "dataset_exists": Code((409,), "A dataset of this name has another content.", "Choose another name."),
    "dataset_in_use": Code((409,), "Runs that have not ended learn from the dataset.", "Stop them, or wait for their end."),
    "run_not_external": Code((409,), "The run is trained here; nobody else reports of it.", "Leave RUN_ID unset."),
    "run_ended": Code((409,), "The run has ended and takes no more reports.", "Begin a new run."),
    "quarantined": Code((409,), "An operator has withdrawn the release.", "Use another release; its owner is told why."),
    "red_badge": Code((409,), "The release failed its check.", "Push a corrected version, or force the run."),
    "not_uploaded": Code((409,), "The file was announced and never arrived.", "Upload it, then finalize."),
    "personal_team": Code((409,), "A personal team has one member.", "Make a shared team."),
    "last_admin": Code((409,), "A team keeps at least one admin.", "Make another member an admin first."),
    "email_taken": Code((409,), "The e-mail address has an account.", "Sign in instead."),
    "slug_taken": Code((409, 422), "The name is taken or reserved.", "Choose another."),
    "name_taken": Code((409,), "A secret or variable has this name already.", "Update that one, or choose another name."),
    "too_many_secrets": Code((409,), "There are as many secrets and variables as there may be.", "Delete one."),
    "linked_secret": Code((409,), "The environment's secret is a link to one of the team.", "Unlink it, or change the team's."),
    "secret_unreadable": Code((409,), "A value was sealed with another key of the installation.", "Set it again."),
    "too_many_webhooks": Code((409,), "The team has as many webhooks as there may be.", "Delete one."),
    "webhook_disabled": Code((409,), "Nothing is sent to the webhook; `detail` says why.", "Enable it again."),
    "delivery_pending": Code((409,), "What was asked for is on its way already.", "Look at the webhook's deliveries."),
    "too_many_keys": Code((409,), "The user has as many keys as there may be.", "Revoke one."),
    "idempotency_in_progress": Code((409,), "The first request with this key is still at work.", "Send it again in a second."),
    "stale_lease": Code((409,), "A newer attempt holds the lease. Leased processes alone see it.", "Stop."),
    "too_large": Code((413,), "The body or the file is too large.", "Send less; `detail` names the limit."),
    "unsupported_media_type": Code((415,), "The body is no JSON.", "Send `Content-Type: application/json`."),
    "not_trainable": Code((422,), "The environment trains none of its agents.", "Evaluate models on it, or force the run."),
    "invalid": Code(
        (422,), "Fields are unknown, malformed or out of range; `detail` lists each with its place.", "Correct them."
    ),
    "archive_refused": Code(
        (422,), "The archive is malformed or dangerous; `detail` names the member.", "Build it again and push."
    ),
    "samples_refused": Code((422,), "The uploaded file is no table of samples; `detail` says why.", "Send a corrected file."),
    "secret_found": Code(
        (422,),
        "A file of the archive holds a key; `detail` names file and line.",
        "Take it out and revoke it; mark a false alarm with `rootstock: not-a-secret`.",
    ),
    "idempotency_mismatch": Code((422,), "The Idempotency-Key was used for another request.", "Use a new key for a new request."),
    "invalid_slug": Code((422,), "The name has a wrong shape.", "3 to 30 lower-case letters, digits and hyphens."),
    "weak_password": Code((422,), "The password is too short.", "Choose a longer one."),
    "not_servable": Code(
        (422,), "No engine could load this adapter; `detail` names the limit.", "Train within the model's limits."
    ),
    "not_exportable": Code((422,), "The adapter's files cannot be written for use elsewhere.", "`detail` says why."),
    "unknown_price": Code((422,), "There is no price for what was used.", "The operator publishes prices."),
    "rate_limited": Code((429,), "Too many requests.", "Wait for `Retry-After` seconds."),
    "internal": Code((500,), "Something unforeseen happened on our side.", "Try again; report the `request_id`."),
    "unavailable": Code((503,), "Something that is needed is away.", "Try again after `Retry-After` seconds."),
    "engine_unavailable": Code((503,), "No engine answers for the model.", "Try again with backoff."),
    "adapter_mismatch": Code((503,), "An engine answered with other weights; the answer was withheld and is free.", "Try again."),
}


def document() -> str:
    """`docs/errors.md`."""
    rows = [
        f"| `{name}` | {', '.join(map(str, code.statuses))} | {code.meaning} | {code.way_out} |" for name, code in CODES.items()
    ]
    head = [
        "# Errors",
        "",
        "Written by `manage.py document_errors`; a test compares it with the code.",
        "",
        "An error's body is `{detail, code, hint, request_id}`. `detail` is a text or, for 422, a list of `{loc, msg, type}`",
        "with one entry per field. `code` is for programs and does not change; texts may. `hint` says what to do next. Report",
        "`request_id` when something is wrong on our side. Below `/api/inference` the body is OpenAI's:",
        "`{error: {message, type, code, param}}`.",
        "",
        "| code | status | meaning | way out |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])
