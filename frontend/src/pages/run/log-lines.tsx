/** Lines of a log, kept at the newest one as long as the reader is there. */
import { useEffect, useRef } from "react";
import type { LogLine } from "./use-log";

const NEAR_PX = 40;

export function LogLines({ lines, isFollowing }: { lines: LogLine[]; isFollowing: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    const element = box.current;
    if (element && isFollowing && isAtEnd.current) element.scrollTop = element.scrollHeight;
  }, [lines, isFollowing]);
  const scrolled = () => {
    const element = box.current;
    if (element) isAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_PX;
  };
  if (lines.length === 0) return <p className="muted">No line fits. A run that has just begun has said nothing yet.</p>;
  return (
    <div ref={box} className="log-lines" role="log" aria-label="Lines" tabIndex={0} onScroll={scrolled}>
      {lines.map((line, index) => (
        <div key={index} className={`log-line ${line.level.toLowerCase()}`}>
          <time dateTime={line.timestamp}>{line.timestamp.slice(11, 19)}</time>
          <span className="log-level">{line.level.toLowerCase()}</span>
          <span className="log-component">{line.component}</span>
          <span className="log-text">{line.message}</span>
        </div>
      ))}
    </div>
  );
}
