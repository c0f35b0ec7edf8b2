// Notifications of the browser.
import { useDevice } from "./device";
import { isShown } from "./shown-conversation";

/**
 * For how long the other tabs show no notification with the same tag, in milliseconds. A tab in the background may notice late what there
 * is to show.
 */
const single = 60_000;

/**
 * Shows a notification about a conversation, unless a visible tab shows the conversation, or another tab has shown a notification with the
 * same tag. Returns null if it is not shown, or is shown by the service worker, as browsers on phones do.
 */
export async function notify(
  tag: string,
  title: string,
  body: string,
  conversation: string,
  open: () => void,
): Promise<Notification | null> {
  if (Notification.permission !== "granted" || (await isShown(conversation))) return null;
  return new Promise((resolve) => {
    void navigator.locks.request(`turnstone-notification/${tag}`, { ifAvailable: true }, (lock) => {
      resolve(lock && show());
      return lock && new Promise((end) => setTimeout(end, single));
    });
  });

  function show(): Notification | null {
    try {
      const notification = new Notification(title, { body, tag });
      notification.onclick = () => {
        window.focus();
        notification.close();
        open();
      };
      return notification;
    } catch {
      void notifyByWorker(tag, title, body, `/c/${conversation}`);
      return null;
    }
  }
}

async function notifyByWorker(tag: string, title: string, body: string, path: string): Promise<void> {
  if (!("serviceWorker" in navigator)) return;
  const worker = await navigator.serviceWorker.ready;
  await worker.showNotification(title, { body, tag, data: path });
}

/** Asks the browser for its permission, and switches the notifications on if it is given. */
export async function allowNotifications(): Promise<NotificationPermission> {
  const given = await Notification.requestPermission();
  useDevice.setState({ notify: given === "granted" });
  return given;
}
