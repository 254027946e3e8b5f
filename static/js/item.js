// The page of one item: its texts, as on the label screen.
import { draw } from "./texts.js";

draw(document.body);
