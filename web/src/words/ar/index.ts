import common from "./common.json";
import composer from "./composer.json";
import rooms from "./rooms.json";
import transcript from "./transcript.json";

export default { ...common, ...composer, ...rooms, ...transcript };
