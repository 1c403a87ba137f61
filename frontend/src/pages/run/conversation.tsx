/** The turns of a rollout as a chat: who said what, which tools were called and what they answered. */
import type { components } from "../../api/schema";

type Message = components["schemas"]["MessageAnswer"];

export function Conversation({ messages }: { messages: Message[] }) {
  if (messages.length === 0) return <p className="muted">The environment reported no messages.</p>;
  return (
    <ol className="conversation">
      {messages.map((message, index) => (
        <li key={index} className={`said ${message.role}`}>
          <b className="small">{message.name ? `${message.role}: ${message.name}` : message.role}</b>
          {message.content && <p>{message.content}</p>}
          {message.tool_calls.map((call, position) => <ToolCall key={position} name={call.name} text={call.arguments} />)}
          {!message.content && message.tool_calls.length === 0 && <p className="muted">(nothing)</p>}
        </li>
      ))}
    </ol>
  );
}

function ToolCall({ name, text }: { name: string; text: string }) {
  return <pre className="tool-call" tabIndex={0}><span className="muted">calls </span><b>{name}</b> {text}</pre>;
}
