/** Evaluation. */
import { Heading } from "../design/heading";

export function EvaluationPage() {
  return <Heading title="Evaluation" />;
}
