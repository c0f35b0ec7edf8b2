// Brings together what this device and another one changed in the account's settings. Pure.
import type { Schemas } from "../api/client";

type Settings = Schemas["Settings"];

export type Preference = Exclude<keyof Settings, "version">;
export type Change = Partial<Omit<Settings, "version">>;

const preferences: readonly Preference[] = ["language", "theme", "send_key", "busy_action", "default_profile"];

export interface Merge {
  /** What the other device stored, with the change of this one where they do not contradict each other. */
  merged: Settings;
  /** What both changed, to different values; merged has the other device's. */
  conflicts: readonly Preference[];
}

/** base: what the change was made to. theirs: what stands now. */
export function merge(base: Settings, change: Change, theirs: Settings): Merge {
  const conflicts = preferences.filter((name) => {
    const mine = change[name] ?? base[name];
    return mine !== base[name] && theirs[name] !== base[name] && mine !== theirs[name];
  });
  const own = preferences.filter((name) => change[name] !== undefined && change[name] !== base[name] && !conflicts.includes(name));
  return { merged: { ...theirs, ...part(change, own) }, conflicts };
}

/** The named preferences of a change. */
export function part(change: Change, names: readonly Preference[]): Change {
  return Object.fromEntries(names.flatMap((name) => (change[name] === undefined ? [] : [[name, change[name]]]))) as Change;
}
