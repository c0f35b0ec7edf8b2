// The wire between a browser and the service, for tests that break it: what is open can be dropped, what is new refused,
// and events held back or changed.
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TurnEvent } from "../src/generated/events";

export class Wire {
  readonly #server: Server;
  #whole = true;
  #from: RegExp | null = null;
  readonly #waiting = new Set<() => void>();
  #change: (event: TurnEvent) => TurnEvent = (event) => event;

  private constructor() {
    this.#server = createServer((asked, answered) => this.#pass(asked, answered));
    this.#server.on("connection", (socket) => {
      if (!this.#whole) socket.destroy();
    });
  }

  static async lay(): Promise<Wire> {
    const wire = new Wire();
    await new Promise<void>((resolve) => wire.#server.listen(0, "127.0.0.1", resolve));
    return wire;
  }

  /** As an option of a visit: its window goes through here. */
  get proxy(): { server: string } {
    return { server: `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}` };
  }

  /** Breaks every connection. What asks again gets through. */
  drop(): void {
    this.#server.closeAllConnections();
  }

  /** Breaks every connection, and refuses others until it is mended. */
  cut(): void {
    this.#whole = false;
    this.drop();
  }

  mend(): void {
    this.#whole = true;
  }

  /** Holds events back from the first one that matches, in every stream, until they are let go. */
  hold(from: RegExp): void {
    this.#from = from;
  }

  letGo(): void {
    this.#from = null;
    for (const go of this.#waiting) go();
    this.#waiting.clear();
  }

  /** Changes what events say, from now on. */
  change(change: (event: TurnEvent) => TurnEvent): void {
    this.#change = change;
  }

  async close(): Promise<void> {
    this.letGo();
    this.drop();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #pass(asked: IncomingMessage, answered: ServerResponse): void {
    const onward = request(asked.url!, { method: asked.method ?? "GET", headers: asked.headers }, (answer) => {
      answered.writeHead(answer.statusCode!, answer.headers);
      answered.flushHeaders();
      if (answer.headers["content-type"]?.startsWith("text/event-stream") === true) void this.#events(answer, answered);
      else answer.pipe(answered);
      answer.on("error", () => answered.destroy());
    });
    onward.on("error", () => answered.destroy());
    answered.on("close", () => onward.destroy());
    asked.pipe(onward);
  }

  /** Passes events on one by one. */
  async #events(answer: IncomingMessage, answered: ServerResponse): Promise<void> {
    let text = "";
    answer.setEncoding("utf8");
    try {
      for await (const piece of answer) {
        text += piece as string;
        for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
          const event = text.slice(0, end + 2);
          text = text.slice(end + 2);
          if (this.#from?.test(event) === true) await new Promise<void>((go) => this.#waiting.add(go));
          answered.write(event.replace(/^data: (.*)$/m, (_, data: string) => `data: ${JSON.stringify(this.#change(JSON.parse(data) as TurnEvent))}`));
        }
      }
      answered.end(text);
    } catch {
      answered.destroy(); // one of the two sides is gone
    }
  }
}
