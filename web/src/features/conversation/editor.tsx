// The editor for a new version of a user message. The existing version and the messages after it are kept.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState, type KeyboardEvent } from "react";
import { settingsQuery } from "../../api/queries";
import { Button } from "../../controls/button";
import { useLocalization } from "../../messages/localization";

interface EditorProps {
  text: string;
  /** Whether the text may be empty. */
  optional: boolean;
  onSend(text: string): void;
  onCancel(): void;
}

export function Editor({ text, optional, onSend, onCancel }: EditorProps) {
  const { t } = useLocalization();
  const [value, setValue] = useState(text);
  const field = useRef<HTMLTextAreaElement>(null);
  const key = useQuery(settingsQuery).data?.send_key ?? "enter";
  useEffect(() => {
    field.current?.focus();
    field.current?.setSelectionRange(text.length, text.length);
  }, [text]);
  const ready = optional || value.trim() !== "";
  const pressed = (event: KeyboardEvent) => {
    // Ignores the key that ends a composition of an input method; Safari reports it as 229.
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    if (event.key === "Escape") {
      event.stopPropagation();
      onCancel();
    } else if (event.key === "Enter" && !event.shiftKey && (event.metaKey || event.ctrlKey || key === "enter")) {
      event.preventDefault();
      if (ready) onSend(value.trim());
    }
  };
  return (
    <form
      className="rounded-lg bg-sunken p-3 focus-within:outline-2 focus-within:outline-offset-1 focus-within:outline-accent"
      onSubmit={(event) => {
        event.preventDefault();
        if (ready) onSend(value.trim());
      }}
    >
      <textarea
        ref={field}
        dir="auto"
        rows={Math.min(12, value.split("\n").length + 1)}
        aria-label={t("transcript.edit_field")}
        value={value}
        onChange={(event) => setValue(event.target.value)}
        onKeyDown={pressed}
        className="field-sizing-content max-h-[50dvh] min-h-16 w-full resize-none bg-transparent px-1 wrap-anywhere outline-none"
      />
      <div className="mt-2 flex flex-wrap items-center justify-end gap-2">
        <p className="grow text-xs text-faint">{t("transcript.edit_hint")}</p>
        <Button look="quiet" onClick={onCancel}>
          {t("transcript.cancel")}
        </Button>
        <Button look="primary" type="submit" disabled={!ready}>
          {t("transcript.send")}
        </Button>
      </div>
    </form>
  );
}
