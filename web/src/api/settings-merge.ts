// Merges the changes that this device and another one made to the account's settings. Pure.
import type { Schemas } from "./client";

type Settings = Schemas["Settings"];

export type Preference = Exclude<keyof Settings, "version">;
export type Change = Partial<Omit<Settings, "version">>;

const preferences: readonly Preference[] = [
  "language",
  "theme",
  "send_key",
  "busy_action",
  "steering_delivery",
  "default_profile",
];

export interface Merge {
  /** The settings of the other device, with the changes of this one that do not conflict. */
  merged: Settings;
  /** The preferences that both changed to different values; merged has the other device's values. */
  conflicts: readonly Preference[];
}

/** base: the settings to which the change was made. theirs: the current settings of the service. */
export function merge(base: Settings, change: Change, theirs: Settings): Merge {
  const conflicts = preferences.filter((name) => {
    const mine = change[name] ?? base[name];
    return mine !== base[name] && theirs[name] !== base[name] && mine !== theirs[name];
  });
  const own = preferences.filter(
    (name) => change[name] !== undefined && change[name] !== base[name] && !conflicts.includes(name),
  );
  return { merged: { ...theirs, ...pickPreferences(change, own) }, conflicts };
}

/** The named preferences of a change. */
export function pickPreferences(change: Change, names: readonly Preference[]): Change {
  return Object.fromEntries(
    names.flatMap((name) => (change[name] === undefined ? [] : [[name, change[name]]])),
  ) as Change;
}
