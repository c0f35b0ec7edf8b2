// Stores the account's settings: seen at once, written one after another, each on top of the version that it was made to.
import { create } from "zustand";
import { notice } from "../api/access";
import { api, body, Refusal, type Settings } from "../api/client";
import { changed, queryClient, settingsQuery } from "../api/queries";
import { merge, part, type Change, type Preference } from "./settings-merge";

interface Store {
  /** Changed here and elsewhere, to different values: the user decides. */
  conflict: { change: Change; theirs: Settings; names: readonly Preference[] } | null;
  /** Why the last change was not stored; null while all is well. */
  refusal: Refusal | null;
  /** When a change was last stored, in milliseconds; 0: never. */
  stored: number;
}

export const useSettingsStore = create<Store>(() => ({ conflict: null, refusal: null, stored: 0 }));

const key = settingsQuery.queryKey;
/** What the service has, as far as is known; null while nothing is being written. */
let base: Settings | null = null;
let waiting: Change = {};

/** Changes settings. spoken: the language that the app speaks, for an account that has never chosen one. */
export async function change(wanted: Change, spoken: string): Promise<void> {
  const shown = queryClient.getQueryData(key);
  if (shown === undefined) return;
  await queryClient.cancelQueries({ queryKey: key });
  waiting = { ...waiting, ...wanted };
  queryClient.setQueryData(key, { ...shown, ...waiting });
  useSettingsStore.setState({ refusal: null });
  if (base !== null) return; // the write under way goes on with it
  base = shown.version === 0 ? { ...shown, language: spoken } : shown;
  try {
    while (Object.keys(waiting).length > 0) await write();
    useSettingsStore.setState({ stored: Date.now() });
    void changed("settings");
  } catch (refusal) {
    if (!(refusal instanceof Refusal)) throw refusal;
    notice(refusal);
    useSettingsStore.setState({ refusal });
  } finally {
    waiting = {};
    queryClient.setQueryData(key, base);
    base = null;
  }
}

/** Writes what waits. Throws the refusal that ends it. */
async function write(): Promise<void> {
  const before = base!;
  const now = waiting;
  waiting = {};
  const { version, ...preferences } = { ...before, ...now };
  try {
    base = await body(api.PUT("/account/settings", { params: { header: { "If-Match": `"v${version}"` } }, body: preferences }));
  } catch (refusal) {
    const theirs = refusal instanceof Refusal && refusal.code === "stale_version" ? (refusal.problem?.current as Settings | null) : null;
    if (!theirs) throw refusal;
    const { merged, conflicts } = merge(before, now, theirs);
    base = theirs;
    const own = Object.keys(now).filter((name) => !conflicts.includes(name as Preference)) as Preference[];
    if (conflicts.length > 0) useSettingsStore.setState({ conflict: { change: part(now, conflicts), theirs, names: conflicts } });
    if (own.some((name) => merged[name] !== theirs[name])) waiting = { ...part(now, own), ...waiting };
  }
  queryClient.setQueryData(key, { ...base!, ...waiting });
}
