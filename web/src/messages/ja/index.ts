// All Japanese messages as one object.
import common from "./common.json";
import composer from "./composer.json";
import pages from "./pages.json";
import transcript from "./transcript.json";

export default { ...common, ...composer, ...pages, ...transcript };
