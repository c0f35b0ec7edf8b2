// The choice of a profile: for the conversation, where the service stores it, or for the next message only.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { noticeSignOut } from "../../api/session-state";
import { api, body, Refusal, type Conversation, type ConversationPage, type Schemas } from "../../api/client";
import type { Profile } from "../../api/outbox";
import { repeatOnCurrent, storeInOrder } from "../../api/change-queue";
import { profilesQuery, refetchInAllTabs } from "../../api/queries";
import { Icon } from "../../controls/icon";
import { Menu, MenuCheck, MenuChoice, MenuLine } from "../../controls/menu";
import { toast } from "../../controls/toast";
import { useLocalization, type Localization } from "../../messages/localization";

export const profiles = ["auto", "balanced", "deep_reasoning", "coding"] as const satisfies readonly Profile[];

interface PickerProps {
  /** The profile of the conversation, or the account's default if it has none. */
  profile: Profile;
  /** The profile of the next message only; null: the same as the conversation. */
  once: Profile | null;
  onProfile: (profile: Profile) => void;
  onOnce: (profile: Profile | null) => void;
}

export function ProfilePicker({ profile, once, onProfile, onOnce }: PickerProps) {
  const { t } = useLocalization();
  const [forOnce, setForOnce] = useState(false);
  const single = forOnce || once !== null;
  const shown = t(`composer.profile.${once ?? profile}`);
  const label = once === null ? shown : t("composer.profile.next_only.short", { profile: shown });
  return (
    <Menu
      side="top"
      trigger={
        <button
          type="button"
          aria-label={t("composer.profile", { profile: label })}
          className="inline-flex h-9 max-w-full min-w-0 items-center gap-1.5 rounded-md px-2.5 text-sm text-soft transition-colors hover:bg-hover hover:text-ink pointer-coarse:h-11"
        >
          <span className="truncate">{label}</span>
          <Icon name="chevronDown" size={14} />
        </button>
      }
    >
      <Choices value={once ?? profile} onChange={(chosen) => (single ? onOnce(chosen) : onProfile(chosen))} />
      <MenuLine />
      <MenuCheck
        checked={single}
        onChange={(on) => {
          setForOnce(on);
          if (!on) onOnce(null);
        }}
      >
        {t("composer.profile.next_only")}
      </MenuCheck>
    </Menu>
  );
}

/** The profiles, each with its model. */
function Choices({ value, onChange }: { value: Profile; onChange: (profile: Profile) => void }) {
  const localization = useLocalization();
  const { data } = useQuery(profilesQuery);
  const options = profiles.map((profile) => optionOf(profile, data?.data, localization));
  return <MenuChoice value={value} onChange={onChange} options={options} />;
}

/** Returns how a profile is shown: with its model and the size of the model's context, if they are known. */
export function optionOf(
  profile: Profile,
  abilities: readonly Schemas["ProfileAbilities"][] | undefined,
  { t, intl }: Pick<Localization, "t" | "intl">,
) {
  const label = t(`composer.profile.${profile}`);
  const hint = t(`composer.profile.${profile}.hint`);
  const able = abilities?.find((one) => one.profile === profile);
  if (able === undefined) return { value: profile, label, hint };
  const tokens = intl.formatNumber(able.context_tokens, { notation: "compact" });
  return {
    value: profile,
    label: t("composer.profile.model", { profile: label, model: able.model_id }),
    hint: t("composer.profile.context", { hint, tokens }),
  };
}

/** Displays and stores the profile of a conversation. If it was changed elsewhere in the meantime, the user decides. */
export async function storeProfile(
  conversation: Conversation | ConversationPage,
  profile: Profile,
  t: Localization["t"],
): Promise<void> {
  try {
    await storeInOrder(conversation, { profile }, (base, signal) =>
      putProfile(base, profile, signal).catch((refusal: unknown) =>
        repeatOnCurrent(refusal, async (current) => {
          if (current.profile === profile) return current;
          if (![conversation.profile, base.profile].includes(current.profile)) throw refusal;
          return putProfile(current, profile, signal); // only other values of the conversation changed
        }),
      ),
    );
  } catch (error) {
    noticeSignOut(error);
    const refusal = error instanceof Refusal ? error : null;
    const current = refusal?.code === "stale_version" ? (refusal.problem?.current as Conversation | null) : null;
    if (!current) {
      toast(t("composer.profile.failed"), {
        kind: "problem",
        action: { label: t("composer.outbox.retry"), run: () => void storeProfile(conversation, profile, t) },
      });
      return;
    }
    const name = (one: Profile | null) => t(`composer.profile.${one ?? "auto"}`);
    toast(t("composer.profile.stale", { profile: name(current.profile) }), {
      stays: 20_000,
      action: {
        label: t("composer.profile.overwrite", { profile: name(profile) }),
        run: () => void storeProfile(current, profile, t),
      },
    });
  } finally {
    void refetchInAllTabs("conversation", conversation.conversation_id);
  }
}

function putProfile(base: Conversation, profile: Profile, signal: AbortSignal): Promise<Conversation> {
  const { conversation_id, version, title, title_source, metadata } = base;
  return body(
    api.PUT("/conversations/{conversation_id}", {
      params: { path: { conversation_id }, header: { "If-Match": `"v${version}"` } },
      body: { profile, metadata, ...(title_source === "user" ? { title } : {}) },
      keepalive: true, // the profile is displayed already
      signal,
    }),
  );
}
