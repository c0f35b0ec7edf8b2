// A row of the list above the composer: one line with the text, its state and its actions. On touch screens the actions
// are in a menu.
import { useState, type DragEvent, type KeyboardEvent, type ReactNode } from "react";
import { Button, IconButton } from "../../controls/button";
import { Icon, type IconName } from "../../controls/icon";
import { touchScreen, useMedia } from "../../controls/media";
import { Menu, MenuItem } from "../../controls/menu";
import { useMessages } from "../../messages/localization";
import { writingMessages } from "../../messages/writing";

export interface RowAction {
  icon: IconName;
  label: string;
  mirrored?: boolean;
  /** Whether the label is visible next to the icon. */
  labelled?: boolean;
  run: () => void;
}

/** How a row moves within its list. */
export interface Reordering {
  id: string;
  /** Moves the row up or down by one; null: it is the first or the last one. */
  up: (() => void) | null;
  down: (() => void) | null;
  /** Moves a dragged row of the same list to the place of this one. */
  onDrop: (id: string) => void;
}

/** The type of the data of a dragged row. */
const draggedRow = "application/x-turnstone-follow-up";

const hasRow = (event: DragEvent) => event.dataTransfer.types.includes(draggedRow);

interface RowProps {
  icon: IconName;
  mirrored?: boolean;
  text: string;
  state: string;
  actions?: readonly RowAction[];
  disabled?: boolean;
  /** Absent: the row cannot be moved. */
  reordering?: Reordering | undefined;
  children?: ReactNode;
}

/** The number of characters of a message by which its buttons are named. */
const nameLength = 40;

export function PendingRow({
  icon,
  mirrored = false,
  text,
  state,
  actions = [],
  disabled = false,
  reordering,
  children,
}: RowProps) {
  const t = useMessages(writingMessages);
  const touch = useMedia(touchScreen);
  const line = text.replace(/\s+/g, " ").trim();
  const name = line.length > nameLength ? `${line.slice(0, nameLength).trimEnd()}…` : line;
  const [over, setOver] = useState(false);
  const dropTarget = reordering !== undefined && {
    onDragOver: (event: DragEvent) => {
      if (!hasRow(event)) return;
      event.preventDefault();
      setOver(true);
    },
    onDragLeave: () => setOver(false),
    onDrop: (event: DragEvent) => {
      setOver(false);
      if (!hasRow(event)) return;
      event.preventDefault();
      reordering.onDrop(event.dataTransfer.getData(draggedRow));
    },
  };
  return (
    <li className={`px-3 text-sm ${over ? "bg-hover" : ""}`} {...dropTarget}>
      <div className="flex min-h-9 items-center gap-2.5 pointer-coarse:min-h-11">
        {reordering === undefined || touch ? (
          <span className="text-faint">
            <Icon name={icon} size={16} mirrored={mirrored} />
          </span>
        ) : (
          <Handle reordering={reordering} name={name} disabled={disabled} />
        )}
        <div className="flex min-w-0 grow flex-col sm:flex-row sm:items-center sm:gap-3">
          {/* As wide as its text: text of the other direction stays next to the icon. */}
          <div className="flex min-w-0 grow">
            <p dir="auto" title={text} className="truncate">
              {line}
            </p>
          </div>
          <p className="shrink-0 text-xs text-faint">{state}</p>
        </div>
        {touch && actions.length > 0 ? (
          <Menu
            side="top"
            align="end"
            trigger={
              <IconButton
                icon="dots"
                label={t("composer.pending.actions")}
                target={name}
                disabled={disabled}
                className="-me-2"
              />
            }
          >
            {actions.map((action) => (
              <MenuItem key={action.label} icon={action.icon} onSelect={action.run}>
                {action.label}
              </MenuItem>
            ))}
            {reordering?.up != null && (
              <MenuItem icon="arrowUp" onSelect={reordering.up}>
                {t("composer.pending.up")}
              </MenuItem>
            )}
            {reordering?.down != null && (
              <MenuItem icon="arrowDown" onSelect={reordering.down}>
                {t("composer.pending.down")}
              </MenuItem>
            )}
          </Menu>
        ) : (
          actions.length > 0 && (
            <div className="-me-1.5 flex shrink-0 items-center">
              {actions.map((action) =>
                action.labelled ? (
                  <Button
                    key={action.label}
                    look="quiet"
                    icon={action.icon}
                    aria-label={`${action.label}: ${name}`}
                    disabled={disabled}
                    onClick={action.run}
                    className="min-h-7 px-2 text-xs"
                  >
                    {action.label}
                  </Button>
                ) : (
                  <IconButton
                    key={action.label}
                    size="small"
                    icon={action.icon}
                    label={action.label}
                    target={name}
                    {...(action.mirrored === undefined ? {} : { mirrored: action.mirrored })}
                    disabled={disabled}
                    onClick={action.run}
                  />
                ),
              )}
            </div>
          )
        )}
      </div>
      {children}
    </li>
  );
}

/** The button by which a row is dragged, or moved with the arrow keys. It keeps the focus when the row has moved. */
function Handle({ reordering, name, disabled }: { reordering: Reordering; name: string; disabled: boolean }) {
  const t = useMessages(writingMessages);
  const { id } = reordering;
  const onKeyDown = (event: KeyboardEvent) => {
    const move = event.key === "ArrowUp" ? reordering.up : event.key === "ArrowDown" ? reordering.down : null;
    if (move === null || disabled) return;
    event.preventDefault();
    move();
    requestAnimationFrame(() => document.querySelector<HTMLElement>(`[data-handle="${id}"]`)?.focus());
  };
  return (
    <button
      type="button"
      draggable={!disabled}
      data-handle={id}
      data-tooltip={t("composer.pending.move_hint")}
      aria-label={t("composer.pending.move", { name })}
      className="-mx-1 inline-flex size-6 shrink-0 cursor-grab items-center justify-center rounded-sm text-faint hover:bg-hover hover:text-ink active:cursor-grabbing"
      onDragStart={(event) => {
        event.dataTransfer.effectAllowed = "move";
        event.dataTransfer.setData(draggedRow, id);
      }}
      onKeyDown={onKeyDown}
    >
      <Icon name="grip" size={16} />
    </button>
  );
}
