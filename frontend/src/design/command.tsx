/** A line to copy into a terminal or a program. */
import { useEffect, useState } from "react";

const TOLD_MS = 1_600;

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [told, setTold] = useState("");
  useEffect(() => {
    if (!told) return;
    const timer = setTimeout(() => setTold(""), TOLD_MS);
    return () => clearTimeout(timer);
  }, [told]);
  const copy = () =>
    // Outside a secure origin the browser has no clipboard to offer: the text stays selectable.
    (navigator.clipboard ? navigator.clipboard.writeText(text) : Promise.reject(new Error("no clipboard"))).then(
      () => setTold("Copied"),
      () => setTold("Select it"),
    );
  return (
    <button type="button" className="button slim" onClick={() => void copy()} aria-label={told || label}>
      <span aria-live="polite">{told || "Copy"}</span>
    </button>
  );
}

export function Command({ text, label }: { text: string; label?: string }) {
  const line = (
    <div className="command">
      <pre tabIndex={0}><code>{text}</code></pre>
      <CopyButton text={text} label={label ? `Copy: ${label}` : "Copy the command"} />
    </div>
  );
  if (!label) return line;
  return (
    <div className="labelled-command">
      <span>{label}</span>
      {line}
    </div>
  );
}
