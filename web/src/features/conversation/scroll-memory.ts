// Where the reader was in the conversations of this tab, by entry of its history: Back and Forward return there.

/** A row and the distance of its top from the top of the visible area, in pixels. */
export interface Reading {
  key: string;
  offset: number;
}

/** The most entries that are kept. */
const maxEntries = 200;

const storageKey = "turnstone-readings";

/** They survive a reload, as the entries of the history do. */
const readings = new Map(stored());

function stored(): [string, Reading][] {
  try {
    return JSON.parse(sessionStorage.getItem(storageKey) ?? "[]") as [string, Reading][];
  } catch {
    return []; // the storage cannot be read
  }
}

/** Keeps where the reader is; null: at the end, where a conversation opens. */
export function keepReading(entry: string, reading: Reading | null): void {
  readings.delete(entry);
  if (reading !== null) readings.set(entry, reading);
  if (readings.size > maxEntries) readings.delete(readings.keys().next().value!);
  try {
    sessionStorage.setItem(storageKey, JSON.stringify([...readings]));
  } catch {
    // The storage cannot be written; a reload then shows the end.
  }
}

export const keptReading = (entry: string | undefined): Reading | null => readings.get(entry ?? "") ?? null;
