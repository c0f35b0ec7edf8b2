// Which profile answers: for the conversation, kept with it on the service, or for the next message alone.
import { useState } from "react";
import { notice } from "../api/access";
import { api, body, Refusal, type Conversation, type ConversationPage } from "../api/client";
import type { Profile } from "../api/outbox";
import { changed, keep } from "../api/queries";
import { Icon } from "../controls/icon";
import { Menu, MenuCheck, MenuChoice, MenuLine } from "../controls/menu";
import { toast } from "../controls/toast";
import { useSpeech, type Speech } from "../words/speech";

export const profiles = ["auto", "balanced", "deep_reasoning", "coding"] as const satisfies readonly Profile[];

interface PickerProps {
  /** The conversation's, or the account's where it has none. */
  standing: Profile;
  /** Of the next message alone; null: as the conversation. */
  once: Profile | null;
  onStanding: (profile: Profile) => void;
  onOnce: (profile: Profile | null) => void;
}

export function ProfilePicker({ standing, once, onStanding, onOnce }: PickerProps) {
  const { say } = useSpeech();
  const [forOnce, setForOnce] = useState(false);
  const single = forOnce || once !== null;
  const shown = say(`composer.profile.${once ?? standing}`);
  const label = once === null ? shown : say("composer.profile.once.short", { profile: shown });
  return (
    <Menu
      side="top"
      trigger={
        <button type="button" aria-label={say("composer.profile", { profile: label })} className="inline-flex h-9 max-w-full min-w-0 items-center gap-1.5 rounded-md px-2.5 text-sm text-soft transition-colors hover:bg-hover hover:text-ink pointer-coarse:h-11">
          <span className="truncate">{label}</span>
          <Icon name="chevronDown" size={14} />
        </button>
      }
    >
      <MenuChoice
        value={once ?? standing}
        onChange={(chosen) => (single ? onOnce(chosen) : onStanding(chosen))}
        options={profiles.map((value) => ({ value, label: say(`composer.profile.${value}`), hint: say(`composer.profile.${value}.hint`) }))}
      />
      <MenuLine />
      <MenuCheck
        checked={single}
        onChange={(on) => {
          setForOnce(on);
          if (!on) onOnce(null);
        }}
      >
        {say("composer.profile.once")}
      </MenuCheck>
    </Menu>
  );
}

/** Keeps a profile with its conversation. One that was changed elsewhere meanwhile is shown, and replaced only if wanted. */
export async function keepProfile(conversation: Conversation | ConversationPage, profile: Profile, say: Speech["say"]): Promise<void> {
  const { conversation_id, version, title, title_source, metadata } = conversation;
  try {
    keep(
      await body(
        api.PUT("/conversations/{conversation_id}", {
          params: { path: { conversation_id }, header: { "If-Match": `"v${version}"` } },
          body: { profile, metadata, ...(title_source === "user" ? { title } : {}) },
        }),
      ),
    );
  } catch (error) {
    notice(error);
    const refusal = error instanceof Refusal ? error : null;
    const current = refusal?.code === "stale_version" ? (refusal.problem?.current as Conversation | undefined) : undefined;
    if (current === undefined) {
      toast(say("composer.profile.failed"), { kind: "problem", action: { label: say("composer.letter.retry"), run: () => void keepProfile(conversation, profile, say) } });
      return;
    }
    await changed("conversation", conversation_id);
    // Only something else of it was changed: that stays, and the profile is as wanted.
    if (current.profile === conversation.profile) return keepProfile(current, profile, say);
    const name = (one: Profile | null) => say(`composer.profile.${one ?? "auto"}`);
    toast(say("composer.profile.stale", { profile: name(current.profile) }), {
      stays: 20_000,
      action: { label: say("composer.profile.overwrite", { profile: name(profile) }), run: () => void keepProfile(current, profile, say) },
    });
  }
}
