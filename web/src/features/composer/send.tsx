// The buttons that send and stop. During a live turn there are up to three ways to send, listed in a menu.
import { useEffect, useState } from "react";
import { Icon, type IconName } from "../../controls/icon";
import { Button, IconButton } from "../../controls/button";
import { Menu, MenuItem } from "../../controls/menu";
import { useLocalization } from "../../messages/localization";
import type { SendMode } from "../../keys/send-modes";

export const verbIcons: Record<SendMode, IconName> = { queue: "queue", steer: "steer", interrupt: "interrupt" };

interface SendProps {
  /** What the button does, if it sends no message; its accessible name. */
  label?: string | undefined;
  /** During a live turn: the way in which the button sends; null: there is no live turn. */
  verb: SendMode | null;
  /** The ways to send during a live turn. */
  verbs: readonly SendMode[];
  /** The displayed key combination of a way to send; empty: none. */
  keysOf: (verb: SendMode) => string;
  disabled: boolean;
  /** The number of uploads for which the message waits. */
  uploading: number;
  /** The ids of the elements that explain why the button is disabled. */
  reason: string | undefined;
  onSend: (verb: SendMode | null) => void;
  /** Returns the element that gets the focus when the focused one disappears. */
  returnTo: () => HTMLElement | null;
}

export function SendButton({ label, verb, verbs, keysOf, disabled, uploading, reason, onSend, returnTo }: SendProps) {
  const { t } = useLocalization();
  const action = label ?? t(verb === null ? "composer.send" : `composer.${verb}`);
  const name = uploading === 0 ? action : t("composer.send.uploading", { action, count: uploading });
  return (
    <span className="flex shrink-0">
      <button
        type="submit"
        aria-label={name}
        data-tooltip={name}
        aria-disabled={disabled || undefined}
        aria-describedby={reason}
        onClick={(event) => {
          event.preventDefault();
          if (!disabled) onSend(verb);
        }}
        className={`inline-flex size-9 items-center justify-center transition-colors pointer-coarse:size-11 ${verb === null ? "rounded-md" : "rounded-s-md"} ${disabled ? "cursor-default! bg-hover text-faint" : "bg-accent text-accent-ink hover:brightness-110"}`}
      >
        <Icon name={verb === null ? "arrowUp" : verbIcons[verb]} mirrored={verb !== null} />
      </button>
      {verb !== null && (
        <Menu
          side="top"
          align="end"
          returnTo={returnTo}
          trigger={
            <button
              type="button"
              aria-label={t("composer.send.more")}
              data-tooltip={t("composer.send.more")}
              disabled={disabled}
              className="ms-px inline-flex h-9 w-7 items-center justify-center rounded-e-md bg-accent text-accent-ink transition-colors hover:brightness-110 disabled:bg-hover disabled:text-faint pointer-coarse:h-11 pointer-coarse:w-9"
            >
              <Icon name="chevronDown" size={14} />
            </button>
          }
        >
          {verbs.map((one) => (
            <MenuItem
              key={one}
              icon={verbIcons[one]}
              hint={t(`composer.${one}.hint`)}
              keys={keysOf(one)}
              onSelect={() => onSend(one)}
            >
              {t(`composer.${one}`)}
            </MenuItem>
          ))}
        </Menu>
      )}
    </span>
  );
}

interface StopProps {
  stopping: boolean;
  /** The number of queued messages. */
  queued: number;
  onStop: (scope: "turn" | "turn_and_follow_ups") => void;
  /** Returns the element that gets the focus when the focused one disappears. */
  returnTo: () => HTMLElement | null;
}

/** Milliseconds before the "stopping" text is shown. Most turns stop faster, and the text would only flicker. */
const stoppingDelay = 300;

export function StopButton({ stopping, queued, onStop, returnTo }: StopProps) {
  const { t } = useLocalization();
  const [long, setLong] = useState(false);
  useEffect(() => {
    setLong(false);
    if (!stopping) return;
    const timer = setTimeout(() => setLong(true), stoppingDelay);
    return () => clearTimeout(timer);
  }, [stopping]);
  if (long && stopping) {
    return (
      <span role="status" className="inline-flex h-9 items-center gap-2 px-2.5 text-sm text-soft pointer-coarse:h-11">
        <Icon name="stop" size={16} />
        {t("composer.stopping")}
      </span>
    );
  }
  return (
    <span className="flex shrink-0">
      <Button
        look="plain"
        icon="stop"
        aria-keyshortcuts="Escape"
        disabled={stopping}
        onClick={() => (returnTo()?.focus(), onStop("turn"))}
        className={queued > 0 ? "rounded-e-none border-e-0" : ""}
      >
        {t("composer.stop")}
      </Button>
      {queued > 0 && !stopping && (
        <Menu
          side="top"
          align="end"
          returnTo={returnTo}
          trigger={
            <IconButton
              icon="chevronDown"
              size="normal"
              look="plain"
              label={t("composer.stop.more")}
              className="w-7! rounded-s-none"
            />
          }
        >
          <MenuItem icon="stop" hint={t("composer.stop.only.hint")} onSelect={() => onStop("turn")}>
            {t("composer.stop.only")}
          </MenuItem>
          <MenuItem
            icon="trash"
            hint={t("composer.stop.all.hint", { count: queued })}
            onSelect={() => onStop("turn_and_follow_ups")}
          >
            {t("composer.stop.all")}
          </MenuItem>
        </Menu>
      )}
    </span>
  );
}
