/** Chat. */
import { Heading } from "../design/heading";

export function ChatPage() {
  return <Heading title="Chat" />;
}
