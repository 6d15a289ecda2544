// What report/assets/page.js draws with, and no more. README.md tells how echarts.min.js is made of it.
import * as core from 'echarts/core';
import {BarChart, CustomChart, LineChart} from 'echarts/charts';
import {AxisPointerComponent, DataZoomInsideComponent, DataZoomSliderComponent, GridComponent, MarkAreaComponent,
  MarkLineComponent, TooltipComponent} from 'echarts/components';
import {CanvasRenderer, SVGRenderer} from 'echarts/renderers';

core.use([AxisPointerComponent, BarChart, CanvasRenderer, CustomChart, DataZoomInsideComponent, DataZoomSliderComponent,
  GridComponent, LineChart, MarkAreaComponent, MarkLineComponent, SVGRenderer, TooltipComponent]);
export const init = core.init;
