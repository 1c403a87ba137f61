/** Makes a webhook: where to, and of which events. */
import { type RequestOf, api } from "../../api/client";
import type { WebhookSecret } from "../../api/shapes";
import { useAction } from "../../api/use-action";
import { Card } from "../../design/card";
import { Field, Form } from "../../design/form";

type Asked = RequestOf<"/api/v1/webhooks", "post">["body"];
type Event = NonNullable<Asked["event_types"]>[number];
// The compiler holds the list against the document: an event that the server does not know is an error here, and so is one left out.
const EVENTS = Object.keys({
  "run.completed": 0, "run.failed": 0, "run.stopped": 0, "run.paused": 0,
  "evaluation.completed": 0, "evaluation.failed": 0, "evaluation.cancelled": 0,
  "release.checked": 0, "deployment.ready": 0, "deployment.failed": 0, "wallet.low": 0,
} satisfies Record<Event, 0>) as Event[];

export function NewWebhook({ onMade }: { onMade: (answer: WebhookSecret) => void }) {
  const make = useAction((body: Asked) => api.post("/api/v1/webhooks", { body }), onMade);
  const submit = async (values: FormData, form: HTMLFormElement) => {
    const chosen = values.getAll("event");
    const body = { url: String(values.get("url") ?? ""), description: String(values.get("description") ?? ""), event_types: EVENTS.filter((event) => chosen.includes(event)), is_enabled: true };
    if (await make.run(body)) form.reset();
  };
  const complaints = make.problem?.fields ?? {};
  return (
    <Card title="New webhook">
      <Form onSubmit={(values, form) => void submit(values, form)} problem={make.problem} names={["url", "description"]}>
        <div className="fields">
          <Field label="Address" name="url" type="url" required maxLength={2000} placeholder="https://…" hint="A public address." complaint={complaints.url} />
          <Field label="What it is for" name="description" maxLength={500} complaint={complaints.description} />
        </div>
        <fieldset>
          <legend>Events; none chosen: all, those that are added later too</legend>
          <div className="checks">
            {EVENTS.map((event) => <label key={event} className="check"><input type="checkbox" name="event" value={event} />{event}</label>)}
          </div>
        </fieldset>
        <div><button className="button primary" disabled={make.isBusy}>Make a webhook</button></div>
      </Form>
    </Card>
  );
}
