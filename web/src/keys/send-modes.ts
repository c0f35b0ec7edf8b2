// The ways and the keys to send a message, by the settings of the account. Pure functions.
/** What sends: Enter, Mod+Enter, or (on a touch screen, where Enter adds a line) the button and Mod+Enter. */
export type SendKey = "enter" | "mod_enter" | "button";

/** The ways to send a message during a live turn. */
export type SendMode = "queue" | "steer" | "interrupt";

/** How the second key combination steers: at the model's next step, or by interrupting the answer. */
export type SteeringDelivery = "next_step" | "interrupt";

/** The way to send of the second key combination: steer as the account wants, or queue if the default does that. */
export function secondMode(verb: SendMode, delivery: SteeringDelivery): SendMode {
  const steers: SendMode = delivery === "interrupt" ? "interrupt" : "steer";
  return verb === steers || verb === "steer" ? "queue" : steers;
}

/** The key combinations that send, that send in the second way during a live turn, and that add a line. */
export function sendKeys(sendKey: SendKey): { send: string; second: string; line: string } {
  return sendKey === "enter"
    ? { send: "Enter", second: "Mod+Enter", line: "Shift+Enter" }
    : { send: "Mod+Enter", second: "Mod+Shift+Enter", line: "Enter" };
}
