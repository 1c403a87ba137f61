/** Billing. */
import { Heading } from "../design/heading";

export function BillingPage() {
  return <Heading title="Billing" />;
}
