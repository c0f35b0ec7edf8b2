// Short messages at the head of the page, where they cover neither what is read nor what is written. Read out politely,
// problems at once. Their time stands still while somebody points at them or has focus in them.
import { useEffect, useState } from "react";
import { create } from "zustand";
import { useSpeech } from "../words/speech";
import { Button, IconButton } from "./button";

interface Toast {
  id: number;
  text: string;
  kind: "plain" | "problem";
  action?: { label: string; run: () => void };
  /** Milliseconds; a problem stays until it is put away. */
  stays: number;
  /** Runs when it goes without its action having been taken. */
  then?: () => void;
}

const useToasts = create<{ list: readonly Toast[] }>(() => ({ list: [] }));
const most = 3;
let made = 0;

/** Shows a message. Returns how to put it away. */
export function toast(text: string, options: { kind?: Toast["kind"]; action?: Toast["action"]; stays?: number; then?: () => void } = {}): () => void {
  const id = ++made;
  const { kind = "plain", action, then } = options;
  const one: Toast = { id, text, kind, stays: options.stays ?? (kind === "problem" ? Infinity : 6_000), ...(action && { action }), ...(then && { then }) };
  const { list } = useToasts.getState();
  for (const old of list.slice(0, Math.max(0, list.length + 1 - most))) putAway(old.id);
  useToasts.setState((toasts) => ({ list: [...toasts.list, one] }));
  return () => putAway(id);
}

function putAway(id: number, taken = false): void {
  const one = useToasts.getState().list.find((toast) => toast.id === id);
  if (one === undefined) return;
  useToasts.setState(({ list }) => ({ list: list.filter((toast) => toast.id !== id) }));
  if (taken) one.action?.run();
  else one.then?.();
}

export function Toasts() {
  const list = useToasts((toasts) => toasts.list);
  return (
    <div className="pointer-events-none fixed inset-x-0 top-[max(0.75rem,env(safe-area-inset-top))] z-50 flex flex-col items-center gap-2 px-4">
      {(["plain", "problem"] as const).map((kind) => (
        <div key={kind} role={kind === "plain" ? "status" : "alert"} className="contents">
          {list.filter((one) => one.kind === kind).map((one) => (
            <Shown key={one.id} toast={one} />
          ))}
        </div>
      ))}
    </div>
  );
}

function Shown({ toast }: { toast: Toast }) {
  const { say } = useSpeech();
  const [held, hold] = useState(false);
  useEffect(() => {
    if (!Number.isFinite(toast.stays) || held) return;
    const timer = setTimeout(() => putAway(toast.id), toast.stays);
    return () => clearTimeout(timer);
  }, [toast, held]);
  return (
    <div
      onPointerEnter={() => hold(true)}
      onPointerLeave={() => hold(false)}
      onFocus={() => hold(true)}
      onBlur={() => hold(false)}
      className={`pointer-events-auto flex max-w-md items-center gap-2 rounded-md border py-1.5 ps-4 pe-1.5 text-sm shadow-float ${toast.kind === "problem" ? "border-danger bg-danger-wash text-danger" : "border-line bg-raised"}`}
    >
      <span className="min-w-0 grow wrap-anywhere">{toast.text}</span>
      {toast.action !== undefined && (
        <Button look="quiet" className="text-tide" onClick={() => putAway(toast.id, true)}>
          {toast.action.label}
        </Button>
      )}
      <IconButton icon="close" size="small" label={say("close")} onClick={() => putAway(toast.id)} />
    </div>
  );
}
