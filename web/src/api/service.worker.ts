// The service worker. It shows the app when the service cannot be reached: it stores the document of the app and its assets, and
// nothing of an account. Other requests do not pass through it.

interface WorkerEvent {
  waitUntil(work: Promise<unknown>): void;
}

interface WorkerFetch extends WorkerEvent {
  readonly request: Request;
  readonly preloadResponse: Promise<Response | undefined>;
  respondWith(response: Promise<Response>): void;
}

interface NotificationClick extends WorkerEvent {
  readonly notification: Notification;
}

interface WindowClient {
  focus(): Promise<WindowClient>;
  postMessage(message: unknown): void;
}

interface Worker {
  readonly clients: {
    claim(): Promise<void>;
    matchAll(options: { type: "window" }): Promise<WindowClient[]>;
    openWindow(address: string): Promise<unknown>;
  };
  readonly registration: { navigationPreload?: { enable(): Promise<void> } };
  skipWaiting(): Promise<void>;
  addEventListener(type: "install" | "activate", listener: (event: WorkerEvent) => void): void;
  addEventListener(type: "fetch", listener: (event: WorkerFetch) => void): void;
  addEventListener(type: "notificationclick", listener: (event: NotificationClick) => void): void;
}

const worker = self as unknown as Worker;
const cacheName = "turnstone";
/** The address under which the document of the app is stored. All pages of the app have the same document. */
const shell = "/";
const pages = /^\/(?:[cp]\/[^/]*|library|settings)?$/;

worker.addEventListener("install", (event) => {
  event.waitUntil(Promise.all([fetch(shell).then(storeShell), worker.skipWaiting()]));
});

worker.addEventListener("activate", (event) => {
  event.waitUntil(Promise.all([worker.registration.navigationPreload?.enable(), worker.clients.claim()]));
});

worker.addEventListener("fetch", (event) => {
  const { method, mode, url } = event.request;
  const { origin, pathname } = new URL(url);
  if (method !== "GET" || origin !== location.origin) return;
  if (mode === "navigate" && pages.test(pathname)) event.respondWith(pageOf(event));
  else if (pathname.startsWith("/assets/")) event.respondWith(assetOf(event));
});

/** A notification that a page has shown with the help of the worker: opens its conversation. */
worker.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification));
});

async function open({ data: path }: Notification): Promise<void> {
  const [page] = await worker.clients.matchAll({ type: "window" });
  if (page === undefined) return void (await worker.clients.openWindow(path as string));
  page.postMessage({ open: path });
  await page.focus();
}

/** Responds with the page of the service. While the service does not respond, it is the stored document, which says so. */
async function pageOf(event: WorkerFetch): Promise<Response> {
  const stored = () => caches.match(shell, { ignoreVary: true });
  let response;
  try {
    response = (await event.preloadResponse) ?? (await fetch(event.request));
  } catch (error) {
    const kept = await stored();
    if (kept === undefined) throw error;
    return kept;
  }
  if (response.status >= 500) return (await stored()) ?? response;
  if (response.ok) event.waitUntil(storeShell(response.clone()));
  return response;
}

/** Stores the document of the app with the assets that it names, and discards those of other versions. */
async function storeShell(response: Response): Promise<void> {
  if (!response.ok) return;
  const cache = await caches.open(cacheName);
  const document = await response.clone().text();
  const before = await (await cache.match(shell, { ignoreVary: true }))?.text();
  const named = assetsOf(document);
  if (before === undefined || assetsOf(before).join() !== named.join()) {
    const known = await cache.keys();
    await cache.addAll(named.filter((name) => !known.some((one) => new URL(one.url).pathname === name)));
    await cache.put(shell, response);
    const old = known.map((one) => new URL(one.url).pathname).filter((name) => name !== shell && !named.includes(name));
    await Promise.all(old.map((name) => cache.delete(name, { ignoreVary: true })));
  } else await cache.put(shell, response);
}

const assetsOf = (document: string): string[] => [
  ...new Set([...document.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, name]) => name!)),
];

/** Responds with a stored asset, or gets and stores it. Assets never change. */
async function assetOf({ request }: WorkerFetch): Promise<Response> {
  const stored = await caches.match(request, { ignoreVary: true });
  if (stored !== undefined) return stored;
  const response = await fetch(request);
  if (response.ok) {
    const copy = response.clone();
    // The storage may be full or not available; then the asset is loaded again.
    void caches
      .open(cacheName)
      .then(
        (cache) => cache.put(request, copy),
        () => {},
      )
      .catch(() => {});
  }
  return response;
}
