// The button that starts and ends a dictation. What listens is loaded when it is pressed.
import { IconButton } from "../../controls/button";
import { deferred } from "../../controls/deferred";
import { useLocalization } from "../../messages/localization";
import { dictates, type DictationState } from "./speech";

const Dictation = deferred(() => import("./dictation").then((m) => m.Dictation), {
  onFailure: ({ onChange }) => onChange(null),
});

interface DictationProps {
  conversation: string;
  /** null: there is no dictation. */
  state: DictationState | null;
  onChange: (state: DictationState | null) => void;
  className?: string;
}

export function DictationButton({ conversation, state, onChange, className = "" }: DictationProps) {
  const { t } = useLocalization();
  if (!dictates) return null;
  const stopping = state !== null && state !== "on";
  return (
    <>
      <IconButton
        icon={state === null ? "microphone" : "stop"}
        label={t(
          state === null ? "composer.dictate" : stopping ? "composer.dictate.stopping" : "composer.dictate.stop",
        )}
        aria-pressed={state !== null}
        aria-disabled={stopping || undefined}
        className={state === null ? className : "bg-hover text-danger!"}
        onClick={() => stopping || onChange(state === null ? "on" : "stopping")}
      />
      {state !== null && <Dictation key={conversation} conversation={conversation} state={state} onChange={onChange} />}
    </>
  );
}
