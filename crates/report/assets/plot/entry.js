export { areaX, areaY, dot, line, lineY, plot, pointer, text, tip } from "@observablehq/plot";
