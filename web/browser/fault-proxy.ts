// A proxy between a browser and the service, for tests of network faults: it can drop connections, refuse new ones, and
// withhold events and the rest of uploads, or change events.
import {
  createServer,
  request,
  type ClientRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import type { TurnEvent } from "../src/generated/events";

export class FaultProxy {
  readonly #server: Server;
  #accepting = true;
  #withheldFrom: RegExp | null = null;
  #bodiesHeld = false;
  readonly #waiting = new Set<() => void>();
  #change: (event: TurnEvent) => TurnEvent = (event) => event;

  private constructor() {
    this.#server = createServer((req, res) => this.#pass(req, res));
    this.#server.on("connection", (socket) => {
      if (!this.#accepting) socket.destroy();
    });
  }

  static async start(): Promise<FaultProxy> {
    const proxy = new FaultProxy();
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  /** The option of a browser window that sends its requests through this proxy. */
  get proxy(): { server: string } {
    return { server: `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}` };
  }

  /** Drops every connection. New connections succeed. */
  drop(): void {
    this.#server.closeAllConnections();
  }

  /** Drops every connection, and refuses new ones until restore. */
  cut(): void {
    this.#accepting = false;
    this.drop();
  }

  restore(): void {
    this.#accepting = true;
  }

  /** Withholds the first event that matches and all later ones, in every stream, until release. */
  hold(from: RegExp): void {
    this.#withheldFrom = from;
  }

  /** Withholds the rest of every content that is being uploaded, until release. */
  holdBodies(): void {
    this.#bodiesHeld = true;
  }

  release(): void {
    this.#withheldFrom = null;
    this.#bodiesHeld = false;
    for (const resume of this.#waiting) resume();
    this.#waiting.clear();
  }

  /** Changes every event from now on by a function. */
  change(change: (event: TurnEvent) => TurnEvent): void {
    this.#change = change;
  }

  async close(): Promise<void> {
    this.release();
    this.drop();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #pass(req: IncomingMessage, res: ServerResponse): void {
    const upstream = request(req.url!, { method: req.method ?? "GET", headers: req.headers }, (reply) => {
      res.writeHead(reply.statusCode!, reply.headers);
      res.flushHeaders();
      if (reply.headers["content-type"]?.startsWith("text/event-stream") === true) void this.#events(reply, res);
      else reply.pipe(res);
      reply.on("error", () => res.destroy());
    });
    upstream.on("error", () => res.destroy());
    res.on("close", () => upstream.destroy());
    if (this.#bodiesHeld && req.method === "PUT") void this.#body(req, upstream);
    else req.pipe(upstream);
  }

  /** Forwards the first piece of a body, and the rest after release. */
  async #body(req: IncomingMessage, upstream: ClientRequest): Promise<void> {
    try {
      for await (const piece of req) {
        upstream.write(piece);
        if (this.#bodiesHeld) await new Promise<void>((resume) => this.#waiting.add(resume));
      }
      upstream.end();
    } catch {
      upstream.destroy(); // the browser has disconnected
    }
  }

  /** Forwards the events of a stream one by one. */
  async #events(reply: IncomingMessage, res: ServerResponse): Promise<void> {
    let text = "";
    reply.setEncoding("utf8");
    try {
      for await (const piece of reply) {
        text += piece as string;
        for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
          const event = text.slice(0, end + 2);
          text = text.slice(end + 2);
          if (this.#withheldFrom?.test(event) === true) await new Promise<void>((resume) => this.#waiting.add(resume));
          res.write(
            event.replace(
              /^data: (.*)$/m,
              (_, data: string) => `data: ${JSON.stringify(this.#change(JSON.parse(data) as TurnEvent))}`,
            ),
          );
        }
      }
      res.end(text);
    } catch {
      res.destroy(); // one of the two sides has disconnected
    }
  }
}
