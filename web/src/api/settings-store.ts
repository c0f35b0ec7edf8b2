// Stores changes of the account's settings: displayed at once, written one after the other, each with the version on
// which it is based.
import { create } from "zustand";
import { noticeSignOut } from "./session-state";
import { api, body, Refusal, type Settings } from "./client";
import { refetchInAllTabs, queryClient, settingsQuery } from "./queries";
import { merge, pickPreferences, type Change, type Preference } from "./settings-merge";

interface Store {
  /** Preferences changed to different values on this and on another device; the user decides. */
  conflict: { change: Change; theirs: Settings; names: readonly Preference[] } | null;
  /** Why the last change was not stored; null: no failure. */
  refusal: Refusal | null;
  /** When a change was last stored, as a Date.now() time; 0: never. */
  storedAt: number;
  /** The changes that are being written; they are displayed in place of the cached settings. */
  pending: Change;
}

export const useSettingsStore = create<Store>(() => ({ conflict: null, refusal: null, storedAt: 0, pending: {} }));

const key = settingsQuery.queryKey;
/** The last known settings of the service while a write is in progress; null: no write is in progress. */
let serverSettings: Settings | null = null;
let pendingChange: Change = {};

/** Changes settings. language: the current language of the app, for an account without stored settings. */
export async function change(wanted: Change, language: string): Promise<void> {
  const shown = queryClient.getQueryData(key);
  if (shown === undefined) return;
  // Written to this store first: the cache notifies its readers later, and the old value would be displayed until then.
  useSettingsStore.setState(({ pending }) => ({ pending: { ...pending, ...wanted }, refusal: null }));
  await queryClient.cancelQueries({ queryKey: key });
  pendingChange = { ...pendingChange, ...wanted };
  queryClient.setQueryData(key, { ...shown, ...pendingChange });
  if (serverSettings !== null) return; // the write in progress continues with this change
  serverSettings = shown.version === 0 ? { ...shown, language } : shown;
  try {
    while (Object.keys(pendingChange).length > 0) await write();
    useSettingsStore.setState({ storedAt: Date.now() });
    void refetchInAllTabs("settings");
  } catch (refusal) {
    if (!(refusal instanceof Refusal)) throw refusal;
    noticeSignOut(refusal);
    useSettingsStore.setState({ refusal });
  } finally {
    pendingChange = {};
    queryClient.setQueryData(key, serverSettings);
    useSettingsStore.setState({ pending: {} });
    serverSettings = null;
  }
}

/**
 * Writes the waiting changes once. On a conflict of versions, merges them with the settings of the service. Throws
 * every other refusal.
 */
async function write(): Promise<void> {
  const before = serverSettings!;
  const now = pendingChange;
  pendingChange = {};
  const { version, ...preferences } = { ...before, ...now };
  try {
    serverSettings = await body(
      api.PUT("/account/settings", { params: { header: { "If-Match": `"v${version}"` } }, body: preferences }),
    );
  } catch (refusal) {
    const theirs =
      refusal instanceof Refusal && refusal.code === "stale_version"
        ? (refusal.problem?.current as Settings | null)
        : null;
    if (!theirs) throw refusal;
    const { merged, conflicts } = merge(before, now, theirs);
    serverSettings = theirs;
    const own = Object.keys(now).filter((name) => !conflicts.includes(name as Preference)) as Preference[];
    if (conflicts.length > 0)
      useSettingsStore.setState({ conflict: { change: pickPreferences(now, conflicts), theirs, names: conflicts } });
    if (own.some((name) => merged[name] !== theirs[name]))
      pendingChange = { ...pickPreferences(now, own), ...pendingChange };
  }
  queryClient.setQueryData(key, { ...serverSettings!, ...pendingChange });
}
