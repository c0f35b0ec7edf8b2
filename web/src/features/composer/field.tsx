// The text field of the composer: grows with its text up to 40% of the screen, and leaves keys to input methods.
import { useLayoutEffect, type ComponentProps, type KeyboardEvent, type RefObject } from "react";
import type { SendKey } from "../../keys/send-modes";
import { actionOf, type KeyAction } from "./keys";

interface FieldProps extends Omit<ComponentProps<"textarea">, "onChange" | "value"> {
  value: string;
  sendKey: SendKey;
  onText: (text: string) => void;
  /** Handles a key; false: the browser handles it as usual. */
  onAction: (action: NonNullable<KeyAction>) => boolean;
  field: RefObject<HTMLTextAreaElement | null>;
}

/** Whether the browser supports field-sizing; without it the height is measured. */
const growsByItself = typeof CSS !== "undefined" && CSS.supports("field-sizing", "content");

/**
 * Characters from which on the field always has its greatest height. The browser would lay out the whole text once more to find that height,
 * for each key.
 */
const longText = 4_000;

export function WritingField({ value, sendKey, onText, onAction, field, ...rest }: FieldProps) {
  const isLong = value.length > longText;
  useLayoutEffect(() => {
    const area = field.current;
    if (growsByItself || area === null) return;
    area.style.height = isLong ? "" : "auto";
    if (!isLong) area.style.height = `${area.scrollHeight}px`;
  }, [field, value, isLong]);

  const pressed = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    const { key, keyCode, shiftKey, ctrlKey, metaKey, altKey } = event;
    const action = actionOf(
      { key, keyCode, shiftKey, ctrlKey, metaKey, altKey, isComposing: event.nativeEvent.isComposing },
      sendKey,
      value === "",
    );
    if (action !== null && onAction(action)) event.preventDefault();
  };

  return (
    <textarea
      ref={field}
      dir={value === "" ? undefined : "auto"} // the placeholder has the direction of the app
      rows={1}
      value={value}
      enterKeyHint={sendKey === "enter" ? "send" : "enter"}
      onChange={(event) => onText(event.target.value)}
      onKeyDown={pressed}
      className={`block ${isLong ? "h-[40dvh]" : "field-sizing-content max-h-[40dvh]"} min-h-14 w-full resize-none overflow-y-auto bg-transparent px-4 pt-3.5 pb-1 text-base wrap-anywhere outline-none placeholder:truncate placeholder:text-faint`}
      {...rest}
    />
  );
}
