// A conversation in a list while several are being selected: a checkbox over the whole row.
import type { ReactNode } from "react";
import type { Conversation } from "../../api/client";
import { Icon } from "../../controls/icon";
import { useLocalization } from "../../messages/localization";
import { select, type ListName } from "./selecting";

interface SelectionRowProps {
  list: ListName;
  conversation: Conversation;
  selected: boolean;
  /** Whether it cannot be selected, for example because it is being deleted. */
  disabled: boolean;
  /** Whether Tab stops at this row. */
  stop?: boolean;
  onFocus?: (id: string) => void;
  children: ReactNode;
}

export function SelectionRow({ list, conversation, selected, disabled, stop = true, ...rest }: SelectionRowProps) {
  const { t } = useLocalization();
  const id = conversation.conversation_id;
  return (
    <button
      type="button"
      role="checkbox"
      aria-checked={selected}
      aria-disabled={disabled || undefined}
      data-conversation={id}
      tabIndex={stop ? 0 : -1}
      onFocus={() => rest.onFocus?.(id)}
      onClick={(event) => disabled || select(list, id, event.shiftKey)}
      className={`flex h-full min-w-0 grow items-center gap-2.5 rounded-md ps-2.5 pe-2 text-start text-sm select-none ${disabled ? "text-faint" : ""}`}
    >
      <span
        className={`inline-flex size-4 shrink-0 items-center justify-center rounded-sm border ${selected ? "border-accent bg-accent text-accent-ink" : "border-edge bg-raised"} ${disabled ? "opacity-50" : ""}`}
      >
        {selected && <Icon name="check" size={14} />}
      </span>
      <span className="flex min-w-0 grow">
        <span dir="auto" className={`truncate text-as-parent ${disabled ? "line-through" : ""}`}>
          {conversation.title || t("pages.untitled")}
        </span>
      </span>
      {rest.children}
    </button>
  );
}
