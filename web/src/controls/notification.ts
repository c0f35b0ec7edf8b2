// Notifications of the browser.

/** Shows a notification; null: the browser does not allow it. Other tabs replace it with the same one. */
export function notify(tag: string, title: string, body: string, open: () => void): Notification | null {
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
    return null; // some browsers on phones have notifications of service workers only
  }
}
