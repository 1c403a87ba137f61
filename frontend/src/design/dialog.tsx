/** A modal question on the platform's own dialog: focus stays inside, Escape leaves. */
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import type { Action } from "../api/use-action";
import { Problem } from "./notice";

export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ReactNode }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const element = dialog.current;
    const opener = document.activeElement;
    element?.showModal();
    return () => {
      element?.close();
      // React has taken the dialog out by now, and then the platform gives no focus back.
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={onClose} onCancel={onClose}>
      <div className="dialog-body">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

interface Confirmed {
  label: string;
  title: string;
  /** What happens, and whether it can be undone. */
  children: ReactNode;
  action: Action<[]>;
  confirm?: string;
  isDanger?: boolean;
  isSlim?: boolean;
}

/** A button that asks before it acts, and tells a failure where it asked. */
export function ConfirmButton({ label, title, children, action, confirm = label, isDanger = false, isSlim = false }: Confirmed) {
  const [isOpen, setOpen] = useState(false);
  const close = () => {
    setOpen(false);
    action.reset();
  };
  const act = async () => {
    if (await action.run()) close();
  };
  return (
    <>
      <button type="button" className={`button ${isSlim ? "slim" : ""} ${isDanger ? "danger" : ""}`} onClick={() => setOpen(true)}>
        {label}
      </button>
      {isOpen && (
        <Dialog title={title} onClose={close}>
          <div className="stack">{children}</div>
          <Problem of={action.problem} />
          <div className="dialog-actions">
            <button type="button" className="button" onClick={close}>Cancel</button>
            <button type="button" className={`button ${isDanger ? "danger" : "primary"}`} disabled={action.isBusy} onClick={() => void act()}>
              {action.isBusy ? "Working …" : confirm}
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}
