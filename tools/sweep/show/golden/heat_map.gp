# optimus sweep show --plot=heat-map. To draw it again:
# gnuplot -e "set terminal svg size 1120,680 font 'sans-serif,15'; set output 'plot.svg'" THIS_FILE
if (!exists('mark')) mark = 0.65
set encoding utf8
set border 3 lw 1 lc rgb '#666666'
set tics nomirror out textcolor rgb '#222222'
set grid lt 1 lw 1 lc rgb '#e2e2e2'
set label 1 'a_test: MFU (%) by tensor parallelism and pipeline parallelism' at screen 0.02,0.955 left noenhanced font ',25'
set label 2 'only where gpus = 3072; each cell is the best over all other axes; framed: the best, 49.37 % at tp 4, pp 8; empty: left out, or nothing ran' at screen 0.02,0.91 left noenhanced textcolor rgb '#555555'
set label 3 'or fits' at screen 0.02,0.877 left noenhanced textcolor rgb '#555555'
set tmargin at screen 0.84
set bmargin at screen 0.12
set lmargin at screen 0.09
unset grid
unset border
unset key
set label 5 'tensor parallelism' at graph 0.5, screen 0.035 center noenhanced
set label 6 'pipeline parallelism' at screen 0.018, graph 0.5 center rotate noenhanced
set lmargin at screen 0.0880
set rmargin at screen 0.86
set xrange [-0.5:2.5]
set yrange [-0.5:2.5]
set xtics ('2' 0, '4' 1, '8' 2) scale 0 noenhanced
set ytics ('4' 0, '8' 1, '16' 2) scale 0 noenhanced
set palette defined (0 '#f4f1de', 0.35 '#a8d5ba', 0.7 '#2a9d8f', 1 '#0b3c49')
set label 7 'MFU (%)' at screen 0.98, graph 0.5 center rotate noenhanced
set cbrange [43.999922695850245:49.3714853724307]
set object 1 rectangle from 0.53,0.53 to 1.47,1.47 front fillstyle empty border rgb '#d1495b' lw 4
# x, y, value, its text, the text's colour
$cells << EOD
2 0 44.12145091785635 "44.12" 0x222222
1 1 49.3714853724307 "49.37" 0xffffff
2 1 44.040357648692286 "44.04" 0x222222
0 2 48.917918980938595 "48.92" 0xffffff
1 2 49.28263436690351 "49.28" 0xffffff
2 2 43.999922695850245 "44.00" 0x222222
EOD
plot $cells using 1:2:($1-0.48):($1+0.48):($2-0.48):($2+0.48):3 with boxxyerror fillstyle solid noborder linecolor palette, \
  $cells using 1:2:4:5 with labels font ',19' textcolor rgb variable noenhanced
