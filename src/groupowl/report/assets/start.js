// Begin.

document.documentElement.classList.add('js');
if (data.path) {
  drawPath(data.path);
  startSlider(data.path);
}
if (data.choice) drawChoice(data.choice);
if (data.table) startTable(data.table);
