// Notifications of the browser.
import { useDevice } from "./device";

/**
 * Shows a notification about the page at a path. Other tabs replace it with the same one. Returns null if the browser does not allow
 * it, or shows it by the service worker, as browsers on phones do.
 */
export function notify(tag: string, title: string, body: string, path: string, open: () => void): Notification | null {
  if (Notification.permission !== "granted") return null;
  try {
    const notification = new Notification(title, { body, tag });
    notification.onclick = () => {
      window.focus();
      notification.close();
      open();
    };
    return notification;
  } catch {
    void notifyByWorker(tag, title, body, path);
    return null;
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
