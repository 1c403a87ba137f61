/** Evaluations. */
import { Heading } from "../design/heading";

export function EvaluationsPage() {
  return <Heading title="Evaluations" />;
}
