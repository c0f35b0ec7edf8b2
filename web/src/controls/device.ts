// What a reader chose on this device and for it alone; kept in the browser.
import { create } from "zustand";

export interface Device {
  /** How a screen reader hears an answer that streams: not at all, sentence by sentence, or once it is there. */
  announce: "off" | "sentences" | "end";
  /** Whether single letters, as j and k, move between messages. */
  letters: boolean;
  /** Whether the sidebar stands beside the room, where there is space for it. */
  sidebar: boolean;
}

const place = "turnstone-device";
const standard: Device = { announce: "end", letters: true, sidebar: true };

/** Reads what was kept; what is missing, damaged or of another version is as it is for everybody. */
export function deviceOf(kept: string | null): Device {
  try {
    const found: Partial<Device> = JSON.parse(kept ?? "{}") ?? {};
    return {
      announce: found.announce === "off" || found.announce === "sentences" ? found.announce : standard.announce,
      letters: typeof found.letters === "boolean" ? found.letters : standard.letters,
      sidebar: typeof found.sidebar === "boolean" ? found.sidebar : standard.sidebar,
    };
  } catch {
    return standard;
  }
}

function kept(): string | null {
  try {
    return localStorage.getItem(place);
  } catch {
    return null; // a browser that keeps nothing
  }
}

export const useDevice = create<Device>(() => deviceOf(kept()));

useDevice.subscribe((device) => {
  try {
    localStorage.setItem(place, JSON.stringify(device));
  } catch {
    // It holds until the page is left.
  }
});
