/** Team. */
import { Heading } from "../design/heading";

export function TeamPage() {
  return <Heading title="Team" />;
}
