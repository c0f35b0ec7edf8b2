// What sends a message, by the settings of the account and the kind of the screen. The composer, its menu, the shortcut
// sheet and the settings use the same functions.
import { useQuery } from "@tanstack/react-query";
import { settingsQuery } from "../api/queries";
import { touchScreen, useMedia } from "../controls/media";
import { secondMode, type SendKey, type SendMode } from "./send-modes";

/** Returns what sends a message: the account's setting, or the button on a touch screen. */
export function useSendKey(): SendKey {
  const touch = useMedia(touchScreen);
  const wanted = useQuery(settingsQuery).data?.send_key ?? "enter";
  return touch ? "button" : wanted;
}

/**
 * Returns the default way to send during a live turn, the way to steer, and the way of the second key combination for a
 * default way.
 */
export function useSendModes(): { wanted: SendMode; steers: SendMode; second: (verb: SendMode) => SendMode } {
  const settings = useQuery(settingsQuery).data;
  const delivery = settings?.steering_delivery ?? "next_step";
  return {
    wanted: settings?.busy_action ?? "queue",
    steers: delivery === "interrupt" ? "interrupt" : "steer",
    second: (verb) => secondMode(verb, delivery),
  };
}
