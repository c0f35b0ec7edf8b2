// Toasts at the top of the page, where they cover neither the newest messages nor the composer. Screen readers announce
// plain ones politely and problems at once. The timer of a toast stops while the toast is hovered or has the focus.
import { useEffect, useState } from "react";
import { create } from "zustand";
import { useLocalization } from "../messages/localization";
import { Button, IconButton } from "./button";

interface Toast {
  id: string;
  text: string;
  kind: "plain" | "problem";
  action?: { label: string; run: () => void };
  /** Milliseconds until it closes; a problem stays until it is dismissed. */
  duration: number;
  /** Runs when the toast closes and its action was not used. */
  onClose?: () => void;
}

const useToasts = create<{ list: readonly Toast[] }>(() => ({ list: [] }));
const maxToasts = 3;

/** Shows a toast. Returns a function that closes it. */
export function toast(
  text: string,
  options: { kind?: Toast["kind"]; action?: Toast["action"]; stays?: number; then?: () => void } = {},
): () => void {
  const id = crypto.randomUUID();
  const { kind = "plain", action, then } = options;
  const one: Toast = {
    id,
    text,
    kind,
    duration: options.stays ?? (kind === "problem" ? Infinity : 6_000),
    ...(action && { action }),
    ...(then && { onClose: then }),
  };
  const { list } = useToasts.getState();
  for (const old of list.slice(0, Math.max(0, list.length + 1 - maxToasts))) dismiss(old.id);
  useToasts.setState((toasts) => ({ list: [...toasts.list, one] }));
  return () => dismiss(id);
}

function dismiss(id: string, acted = false): void {
  const one = useToasts.getState().list.find((toast) => toast.id === id);
  if (one === undefined) return;
  useToasts.setState(({ list }) => ({ list: list.filter((toast) => toast.id !== id) }));
  if (acted) one.action?.run();
  else one.onClose?.();
}

export function Toasts() {
  const list = useToasts((toasts) => toasts.list);
  return (
    <div className="pointer-events-none fixed inset-x-0 top-[max(0.75rem,env(safe-area-inset-top))] z-50 flex flex-col items-center gap-2 px-4">
      {(["plain", "problem"] as const).map((kind) => (
        <div key={kind} role={kind === "plain" ? "status" : "alert"} className="contents">
          {list
            .filter((one) => one.kind === kind)
            .map((one) => (
              <Shown key={one.id} toast={one} />
            ))}
        </div>
      ))}
    </div>
  );
}

function Shown({ toast }: { toast: Toast }) {
  const { t } = useLocalization();
  const [held, hold] = useState(false);
  useEffect(() => {
    if (!Number.isFinite(toast.duration) || held) return;
    const timer = setTimeout(() => dismiss(toast.id), toast.duration);
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
        <Button look="quiet" className="text-accent" onClick={() => dismiss(toast.id, true)}>
          {toast.action.label}
        </Button>
      )}
      <IconButton icon="close" size="small" label={t("close")} onClick={() => dismiss(toast.id)} />
    </div>
  );
}
