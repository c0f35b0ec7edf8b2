// The settings of this device, stored in the browser and not on the service.
import { create } from "zustand";
import { storePreference } from "../api/preference";

export interface DeviceSettings {
  /** How a streaming answer is announced to a screen reader: not at all, by sentence, or once it is complete. */
  announce: "off" | "sentences" | "end";
  /** Whether the single-letter shortcuts j and k move between messages. */
  letterShortcuts: boolean;
  /** Whether the browser shows a notification when an answer is complete, a call waits for the user's approval, or a research task has ended. */
  notify: boolean;
  /** Whether notifications are offered below an answer that takes long, until the user has decided. */
  offerNotifications: boolean;
  /** Whether the sidebar is shown next to the page, where there is space for it. */
  sidebar: boolean;
}

const storageKey = "turnstone-device";
const defaults: DeviceSettings = {
  announce: "end",
  letterShortcuts: true,
  notify: false,
  offerNotifications: true,
  sidebar: true,
};

/** Parses the stored settings. Missing, damaged and unknown values are replaced by the defaults. */
export function parseDeviceSettings(kept: string | null): DeviceSettings {
  try {
    const found: Partial<DeviceSettings> = JSON.parse(kept ?? "{}") ?? {};
    return {
      announce: found.announce === "off" || found.announce === "sentences" ? found.announce : defaults.announce,
      letterShortcuts: typeof found.letterShortcuts === "boolean" ? found.letterShortcuts : defaults.letterShortcuts,
      notify: typeof found.notify === "boolean" ? found.notify : defaults.notify,
      offerNotifications:
        typeof found.offerNotifications === "boolean" ? found.offerNotifications : defaults.offerNotifications,
      sidebar: typeof found.sidebar === "boolean" ? found.sidebar : defaults.sidebar,
    };
  } catch {
    return defaults;
  }
}

function storedText(): string | null {
  try {
    return localStorage.getItem(storageKey);
  } catch {
    return null; // the storage is not available
  }
}

export const useDevice = create<DeviceSettings>(() => parseDeviceSettings(storedText()));

/** Starts to store the settings when they change. */
export function startDevice(): void {
  useDevice.subscribe((device) => {
    storePreference("sidebar", device.sidebar ? "shown" : "hidden");
    try {
      localStorage.setItem(storageKey, JSON.stringify(device));
    } catch {
      // The storage is not available; the settings last until the page is closed.
    }
  });
}
