/** Models. */
import { Heading } from "../design/heading";

export function ModelsPage() {
  return <Heading title="Models" />;
}
