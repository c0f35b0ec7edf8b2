// The buttons that send and stop. While an answer is written there are three ways to send, and all of them are named.
import { useEffect, useState } from "react";
import { Icon, type IconName } from "../controls/icon";
import { Button, IconButton } from "../controls/button";
import { Menu, MenuItem } from "../controls/menu";
import { useSpeech } from "../words/speech";
import type { Verb } from "./keys";

export const verbIcons: Record<Verb, IconName> = { queue: "queue", steer: "steer", interrupt: "spark" };

interface SendProps {
  /** While an answer is written: what the button does; null: it sends. */
  verb: Verb | null;
  /** The ways there are while an answer is written. */
  verbs: readonly Verb[];
  /** The keys of a way, as shown; empty: none. */
  keysOf: (verb: Verb) => string;
  disabled: boolean;
  /** Why it is, for who asks; the identifier of the text. */
  reason: string | undefined;
  onSend: (verb: Verb | null) => void;
  /** Where focus goes when what had it goes away. */
  returnTo: () => HTMLElement | null;
}

export function SendButton({ verb, verbs, keysOf, disabled, reason, onSend, returnTo }: SendProps) {
  const { say } = useSpeech();
  const name = say(verb === null ? "composer.send" : `composer.${verb}`);
  return (
    <span className="flex shrink-0">
      <button
        type="submit"
        aria-label={name}
        title={name}
        aria-disabled={disabled || undefined}
        aria-describedby={reason}
        onClick={(event) => {
          event.preventDefault();
          if (!disabled) onSend(verb);
        }}
        className={`inline-flex size-9 items-center justify-center transition-colors pointer-coarse:size-11 ${verb === null ? "rounded-md" : "rounded-s-md"} ${disabled ? "cursor-default! bg-hover text-faint" : "bg-tide text-tide-ink hover:brightness-110"}`}
      >
        <Icon name={verb === null ? "arrowUp" : verbIcons[verb]} mirrored={verb !== null} />
      </button>
      {verb !== null && (
        <Menu
          side="top"
          align="end"
          returnTo={returnTo}
          trigger={
            <button type="button" aria-label={say("composer.verbs")} title={say("composer.verbs")} disabled={disabled} className="ms-px inline-flex h-9 w-7 items-center justify-center rounded-e-md bg-tide text-tide-ink transition-colors hover:brightness-110 disabled:bg-hover disabled:text-faint pointer-coarse:h-11 pointer-coarse:w-9">
              <Icon name="chevronDown" size={14} />
            </button>
          }
        >
          {verbs.map((one) => (
            <MenuItem key={one} icon={verbIcons[one]} hint={say(`composer.${one}.hint`)} keys={keysOf(one)} onSelect={() => onSend(one)}>
              {say(`composer.${one}`)}
            </MenuItem>
          ))}
        </Menu>
      )}
    </span>
  );
}

interface StopProps {
  stopping: boolean;
  /** How many messages wait behind the answer. */
  queued: number;
  onStop: (scope: "turn" | "turn_and_follow_ups") => void;
  /** Where focus goes when what had it goes away. */
  returnTo: () => HTMLElement | null;
}

/** Most turns stop so fast that another word would only flicker, in milliseconds. */
const unnoticed = 300;

export function StopButton({ stopping, queued, onStop, returnTo }: StopProps) {
  const { say } = useSpeech();
  const [long, setLong] = useState(false);
  useEffect(() => {
    setLong(false);
    if (!stopping) return;
    const timer = setTimeout(() => setLong(true), unnoticed);
    return () => clearTimeout(timer);
  }, [stopping]);
  if (long && stopping) {
    return (
      <span role="status" className="inline-flex h-9 items-center gap-2 px-2.5 text-sm text-soft pointer-coarse:h-11">
        <Icon name="stop" size={16} />
        {say("composer.stopping")}
      </span>
    );
  }
  return (
    <span className="flex shrink-0">
      <Button look="plain" icon="stop" aria-keyshortcuts="Escape" disabled={stopping} onClick={() => (returnTo()?.focus(), onStop("turn"))} className={queued > 0 ? "rounded-e-none border-e-0" : ""}>
        {say("composer.stop")}
      </Button>
      {queued > 0 && !stopping && (
        <Menu side="top" align="end" returnTo={returnTo} trigger={<IconButton icon="chevronDown" size="normal" look="plain" label={say("composer.stop.more")} className="w-7! rounded-s-none" />}>
          <MenuItem icon="stop" hint={say("composer.stop.only.hint")} onSelect={() => onStop("turn")}>
            {say("composer.stop.only")}
          </MenuItem>
          <MenuItem icon="trash" hint={say("composer.stop.all.hint", { count: queued })} onSelect={() => onStop("turn_and_follow_ups")}>
            {say("composer.stop.all")}
          </MenuItem>
        </Menu>
      )}
    </span>
  );
}
