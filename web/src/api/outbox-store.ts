// Stores outbox messages in IndexedDB, where they survive a reload or a crash of the browser. Without IndexedDB (some
// private windows) they last as long as the page; the draft on the server is not cleared before a message is accepted.
import type { OutboxStore } from "./delivery";
import type { OutboxMessage } from "./outbox-message";

const name = "turnstone";
const storeName = "messages";

export function createOutboxStore(): OutboxStore {
  const memory = new Map<string, OutboxMessage>();
  let opened: Promise<IDBDatabase> | null = null;

  const open = () =>
    (opened ??= new Promise<IDBDatabase>((resolve, reject) => {
      const request = indexedDB.open(name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(storeName, { keyPath: "key" });
      request.onsuccess = () => {
        // Another version of the app wants to upgrade the database: close the connection and open it again when needed.
        request.result.onversionchange = () => {
          request.result.close();
          opened = null;
        };
        request.result.onclose = () => void (opened = null);
        resolve(request.result);
      };
      request.onerror = () => reject(request.error ?? new Error("IndexedDB is not available"));
    }).catch((error: unknown) => {
      opened = null;
      throw error;
    }));

  /** Runs one transaction; resolves with the value passed to result once the transaction is on disk. */
  async function run<T>(
    mode: IDBTransactionMode,
    work: (store: IDBObjectStore, result: (value: T) => void) => void,
  ): Promise<T> {
    const database = await open();
    return new Promise<T>((resolve, reject) => {
      const transaction = database.transaction(storeName, mode, { durability: "strict" });
      let value: T;
      transaction.oncomplete = () => resolve(value);
      transaction.onabort = transaction.onerror = () =>
        reject(transaction.error ?? new Error("the IndexedDB transaction failed"));
      work(transaction.objectStore(storeName), (result) => (value = result));
    });
  }

  const read = <T>(query: (store: IDBObjectStore) => IDBRequest<T>, otherwise: T): Promise<T> =>
    run<T>("readonly", (store, result) => {
      const request = query(store);
      request.onsuccess = () => result(request.result);
    }).catch(() => otherwise);

  return {
    async all() {
      const stored = await read<OutboxMessage[]>((store) => store.getAll() as IDBRequest<OutboxMessage[]>, []);
      return [...stored, ...memory.values()];
    },
    async get(key) {
      return (
        memory.get(key) ??
        (await read<OutboxMessage | undefined>(
          (store) => store.get(key) as IDBRequest<OutboxMessage | undefined>,
          undefined,
        ))
      );
    },
    put: (message) =>
      run<void>("readwrite", (store) => void store.put(message)).catch(() => void memory.set(message.key, message)),
    async replace(message) {
      if (memory.has(message.key)) {
        memory.set(message.key, message);
        return true;
      }
      return run<boolean>("readwrite", (store, result) => {
        const known = store.getKey(message.key);
        known.onsuccess = () => {
          result(known.result !== undefined);
          if (known.result !== undefined) store.put(message);
        };
        // If the write fails (for example on a full disk), the stored version remains and can still be sent.
      }).catch(() => true);
    },
    async remove(key) {
      memory.delete(key);
      await run<void>("readwrite", (store) => void store.delete(key)).catch(() => {});
    },
  };
}
