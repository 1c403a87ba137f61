/** What stands where nothing is yet: why, and the command that changes it. */
import type { ReactNode } from "react";
import { Command } from "./command";
import { Seedling } from "./icons";

export function Empty({ title, command, children }: { title: string; command?: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <Seedling />
      <p><b>{title}</b></p>
      {children}
      {command && <Command text={command} />}
    </div>
  );
}
